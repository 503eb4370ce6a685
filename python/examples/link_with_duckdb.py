#!/usr/bin/env python3
"""Links a party's table with the primary's table in DuckDB, for the linker `aligned`; the tables need not fit into memory.

    link_with_duckdb.py PRIMARY OTHER --keys x,y --neighbours 5 --out linked.parquet [--memory 2GB] [--threads 2]

PRIMARY and OTHER are CSV or Parquet files with the two key columns. The result has K rows for each row of PRIMARY, in the order of PRIMARY:
the columns of its K nearest records in OTHER, nearest first, and their distance. Needs the package duckdb.

The search is exact. It looks for the K nearest records in the three by three cells of a grid around each row. A row is done if its K-th
record is not farther than the side of a cell, because no record outside these cells is nearer. The other rows try again with cells of
twice the side. Use it for tables that cover the same area: many rows far from all records, or many records at one place, make many pairs.
"""

import argparse
import glob
import math
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
            FROM (SELECT *, floor(k0 / {side})::BIGINT + dx AS cx, floor(k1 / {side})::BIGINT + dy AS cy
                  FROM open, (VALUES (-1), (0), (1)) AS a(dx), (VALUES (-1), (0), (1)) AS b(dy)) AS own
            JOIN (SELECT *, floor(k0 / {side})::BIGINT AS cx, floor(k1 / {side})::BIGINT AS cy FROM other) AS other USING (cx, cy),
            LATERAL (SELECT (own.k0 - other.k0) ** 2 + (own.k1 - other.k1) ** 2 AS square)
            GROUP BY own.row""")
        database.execute(f"""
            INSERT INTO found SELECT * FROM tried
            WHERE len(squares) = {neighbours} AND squares[{neighbours}] <= {side} ** 2""")
        database.execute("CREATE OR REPLACE TABLE open AS SELECT * FROM own WHERE row NOT IN (SELECT row FROM found)")
        if database.execute("SELECT count(*) FROM open").fetchone()[0] == 0:
            return
        side *= 2


def first_side(database, neighbours, records):
    """Returns a side of cells with a few times K records, without regard to the outermost two percent of the records."""
    spreads, largest = [], 0.0
    for key in ("k0", "k1"):
        low, high, least, most = database.execute(
            f"SELECT quantile_cont({key}, 0.01), quantile_cont({key}, 0.99), min({key}), max({key}) FROM other"
        ).fetchone()
        spreads.append(high - low or most - least)
        largest = max(largest, *database.execute(f"SELECT max(abs({key})) FROM (FROM own UNION ALL FROM other)").fetchone())
    if largest > 1e150:
        raise SystemExit("a key above 1e150 is too large for squares of distances; divide the keys of both tables by a number")
    share = 2 * neighbours / records
    if min(spreads) > 0:
        side = (share * spreads[0] * spreads[1] / math.pi) ** 0.5
    else:
        side = share * max(spreads)
    # The number of a cell has fewer than 50 bits, so that neighbouring cells differ.
    return max(side, largest * 2.0**-49) or 1.0


def linked(database, keys, given):
    """Links the tables, and writes the result."""
    database.execute(f"SET memory_limit = {literal(given.memory)}")
    database.execute(f"SET threads = {given.threads}")
    numbered(database, "own", given.primary, keys)
    records = numbered(database, "other", given.other, keys)
    if records < given.neighbours:
        raise SystemExit(f"{given.other} has {records} records; {given.neighbours} are needed for each row")
    link(database, given.neighbours, first_side(database, given.neighbours, records))
    columns = [name for name, *_ in database.execute(f"SELECT * FROM {literal(given.other)} LIMIT 0").description]
    if taken := {"distance", "link_row"}.intersection(map(str.lower, columns)):
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
    if not given.out.endswith((".csv", ".parquet")):
        parser.error("--out must end in .csv or .parquet")
    # DuckDB takes the name of a file as a pattern.
    given.primary, given.other = glob.escape(given.primary), glob.escape(given.other)
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
