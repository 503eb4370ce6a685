#!/usr/bin/env python3
"""Links a party's table with the primary's table in DuckDB, for the linker `aligned`; the tables need not fit into memory.

    link_with_duckdb.py PRIMARY OTHER --keys x,y --neighbours 5 --out linked.parquet [--memory 2GB] [--threads 2]

PRIMARY and OTHER are CSV or Parquet files with the two key columns. The result has K rows for each row of PRIMARY, in the order of PRIMARY:
the columns of its K nearest records in OTHER, nearest first, and their distance. Needs the package duckdb.

The search is exact. It looks for the K nearest records in the three by three cells of a grid around each row. A row is done if its K-th
record is not farther than the side of a cell, because no record outside these cells is nearer. The other rows try again with cells of
twice the side.
"""

import argparse
import tempfile
from pathlib import Path

import duckdb


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def literal(text):
    return "'" + text.replace("'", "''") + "'"


def numbered(database, table, file, keys):
    """Makes a table of row numbers, from 0, and keys."""
    columns = ", ".join(f"{quoted(key)}::DOUBLE AS k{at}" for at, key in enumerate(keys))
    database.execute(f"CREATE TABLE {table} AS SELECT row_number() OVER () - 1 AS row, {columns} FROM {literal(file)}")
    sound = "coalesce(isfinite(k0) AND isfinite(k1), false)"
    rows, missing = database.execute(f"SELECT count(*), count(*) FILTER (NOT {sound}) FROM {table}").fetchone()
    if missing:
        raise SystemExit(f"{file}: {missing} of {rows} rows lack a key; remove them or fill the cells")
    if rows == 0:
        raise SystemExit(f"{file} has no rows")
    return rows


def link(database, neighbours, side):
    """Makes the table `found`: for each row of the primary its K nearest records and their squared distances."""
    database.execute("CREATE TABLE found (row BIGINT, records BIGINT[], squares DOUBLE[])")
    database.execute("CREATE TABLE open AS SELECT * FROM own")
    while True:
        # A row and the nine cells around it, joined with the records of these cells.
        database.execute(f"""
            CREATE OR REPLACE TABLE tried AS
            SELECT own.row, arg_min(other.row, square, {neighbours}) AS records, min(square, {neighbours}) AS squares
            FROM (SELECT *, floor(k0 / {side}) + dx AS cx, floor(k1 / {side}) + dy AS cy
                  FROM open, (VALUES (-1), (0), (1)) AS a(dx), (VALUES (-1), (0), (1)) AS b(dy)) AS own
            JOIN (SELECT *, floor(k0 / {side}) AS cx, floor(k1 / {side}) AS cy FROM other) AS other USING (cx, cy),
            LATERAL (SELECT (own.k0 - other.k0) ** 2 + (own.k1 - other.k1) ** 2 AS square)
            GROUP BY own.row""")
        database.execute(f"""
            INSERT INTO found SELECT * FROM tried
            WHERE len(squares) = {neighbours} AND squares[{neighbours}] <= {side} ** 2""")
        database.execute("CREATE OR REPLACE TABLE open AS SELECT * FROM own WHERE row NOT IN (SELECT row FROM found)")
        if database.execute("SELECT count(*) FROM open").fetchone()[0] == 0:
            return
        side *= 2


def linked(database, keys, given):
    """Links the tables, and writes the result."""
    database.execute(f"SET memory_limit = {literal(given.memory)}")
    database.execute(f"SET threads = {given.threads}")
    numbered(database, "own", given.primary, keys)
    records = numbered(database, "other", given.other, keys)
    if records < given.neighbours:
        raise SystemExit(f"{given.other} has {records} records; {given.neighbours} are needed for each row")
    area = database.execute("SELECT (max(k0) - min(k0)) * (max(k1) - min(k1)) FROM other").fetchone()[0]
    # About twice K records in a circle of this radius, if they are spread evenly.
    side = max((2 * given.neighbours * area / (3.14 * records)) ** 0.5, 1e-9)
    link(database, given.neighbours, side)
    columns = [name for name, *_ in database.execute(f"SELECT * FROM {literal(given.other)} LIMIT 0").description]
    if taken := {"distance", "link_row"}.intersection(columns):
        raise SystemExit(f"{given.other} has a column `{taken.pop()}`, which this program adds; rename it")
    form = "CSV, HEADER" if given.out.endswith(".csv") else "PARQUET"
    database.execute(f"""
        COPY (SELECT content.* EXCLUDE (link_row), sqrt(pair.square) AS distance
              FROM (SELECT row, unnest(records) AS record, unnest(squares) AS square FROM found) AS pair
              JOIN (SELECT row_number() OVER () - 1 AS link_row, * FROM {literal(given.other)}) AS content ON content.link_row = pair.record
              ORDER BY pair.row, pair.square, pair.record)
        TO {literal(given.out)} (FORMAT {form})""")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("primary")
    parser.add_argument("other")
    parser.add_argument("--keys", required=True, help="the two key columns, in both files")
    parser.add_argument("--neighbours", type=int, default=5)
    parser.add_argument("--out", required=True, help="the result, .parquet or .csv")
    parser.add_argument("--memory", default="2GB")
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    keys = given.keys.split(",")
    if len(keys) != 2:
        parser.error("--keys needs two columns")
    if given.neighbours < 1:
        parser.error("--neighbours must be at least 1")
    # A database in a file: what exceeds the memory goes to the disk.
    with tempfile.TemporaryDirectory(dir=Path(given.out).resolve().parent) as folder:
        with duckdb.connect(f"{folder}/link.duckdb") as database:
            try:
                linked(database, keys, given)
            except duckdb.Error as error:
                raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
