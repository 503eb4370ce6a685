#!/usr/bin/env python3
"""The linkers' speed beside anonlink's and OpenMined's, in turns, one thread each.

    linkage_speed.py FET [--rows 20000] [--keys 50000] [--turns 3]

FET is the program. Needs the packages clkhash, anonlink and openmined_psi. Filters of 1,024 bits are made once of random people by a schema of
clkhash (`fet link encode`, the same bits as clkhash's), and read by both; what is timed is finding, for each row of one table, the ten most similar of
the other by Dice similarity, with and without a threshold of 0.7. The intersection is of texts, half of which both tables have: all messages of
both sides. Reading files is not timed. It prints medians and their ratio.
"""

import argparse
import csv
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from base64 import b64decode
from pathlib import Path

FEATURE = {
    "format": {"type": "string", "encoding": "utf-8"},
    "hashing": {
        "comparison": {"type": "ngram", "n": 2},
        "strategy": {"bitsPerFeature": 100},
        "hash": {"type": "blakeHash"},
    },
}
FIELDS = ["given", "surname", "street", "town", "born"]
SCHEMA = {
    "version": 3,
    "clkConfig": {"l": 1024, "kdf": {"type": "HKDF", "hash": "SHA256", "salt": "AAAA", "info": "", "keySize": 64}},
    "features": [{"identifier": name, **FEATURE} for name in FIELDS],
}


def people(rows, draw):
    word = lambda least, most: "".join(draw.choice("aaabcdeeefghiiklmnoooprstuvz") for _ in range(draw.randint(least, most)))
    words = [[word(3, 9) for _ in range(2000)] for _ in range(4)]
    return [[*(draw.choice(own) for own in words), str(draw.randint(19300101, 20051231))] for _ in range(rows)]


def table(path, header, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def fet(program, folder, *arguments):
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "FET_LINK_SECRET": "a secret of the benchmark"}
    run = subprocess.run([program, "link", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return run.stdout


def seconds(text):
    return float(re.search(r"rows(?: by `\w+`)?: ([\d.]+) s", text).group(1))


def turns(count, ours, theirs, what):
    figures = [(ours(), theirs()) for _ in range(count)]
    mine, other = (statistics.median(column) for column in zip(*figures))
    print(f"| {what} | {mine:.2f} s | {other:.2f} s | {other / mine:.2f} |  ({figures})", flush=True)


def filters(program, folder, rows, count):
    from anonlink.similarities import dice_coefficient_accelerated
    from bitarray import bitarray

    draw = random.Random(1)
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    ours = people(rows, draw)
    for name, own in (("a", ours), ("b", ours[: rows // 2] + people(rows - rows // 2, draw))):
        table(folder / f"{name}.csv", FIELDS, own)
        fet(program, folder, "encode", f"{name}.csv", "--schema", "schema.json", "--out", f"{name}.json")
    tables = []
    for name in ("a", "b"):
        rows_of = json.loads((folder / f"{name}.json").read_text())["clks"]
        tables.append([])
        for text in rows_of:
            bits = bitarray(endian="big")
            bits.frombytes(b64decode(text))
            tables[-1].append(bits)
    for threshold in (0.7, 0.0):
        def theirs():
            start = time.perf_counter()
            dice_coefficient_accelerated(tables, threshold, k=10)
            return time.perf_counter() - start

        def mine():
            more = ["--neighbours", "10", "--threshold", str(threshold) if threshold else "none", "--all-pairs"]
            return seconds(fet(program, folder, "match", "a.json", "b.json", "--out", "p.csv", *more))

        turns(count, mine, theirs, f"CLK, {rows} by {rows}, ten best, threshold {threshold}")


def intersection(program, folder, keys, count):
    import private_set_intersection.python as psi

    asked, owned = ([f"key {key}" for key in range(start, start + keys)] for start in (0, keys // 2))
    for name, own in (("x", asked), ("y", owned)):
        table(folder / f"{name}.csv", ["key"], [[key] for key in own])

    def theirs():
        start = time.perf_counter()
        client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
        setup = server.CreateSetupMessage(0.0, len(asked), owned, psi.DataStructure.RAW)
        response = server.ProcessRequest(client.CreateRequest(asked))
        assert len(client.GetIntersection(setup, response)) == keys - keys // 2
        return time.perf_counter() - start

    def mine():
        return seconds(fet(program, folder, "x.csv", "y.csv", "--keys", "key", "--linker", "psi", "--set", "k=1", "--out", "p.csv"))

    turns(count, mine, theirs, f"PSI, {keys} by {keys}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    program = str(arguments.fet.resolve())
    print("| what | ours | theirs | theirs / ours |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        filters(program, Path(folder), arguments.rows, arguments.turns)
        intersection(program, Path(folder), arguments.keys, arguments.turns)


if __name__ == "__main__":
    main()
