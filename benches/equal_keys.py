#!/usr/bin/env python3
"""How many rows of hdb and house have one key, and so the same neighbours, and what that saves an evaluation.

    equal_keys.py DATA        # the folder with hdb/ and house/, as FET_DATA

It prints, for each table: rows, distinct keys, distinct keys among 128 rows (the mean of 200 draws), and how many lists an evaluation of 10 % and 20 % of
the rows encodes, in place of all its rows, where 40 kB each are kept in so many MB (K = H = 100). The split is drawn here, by a fixed seed.
"""

import csv
import gzip
import heapq
import random
import sys

PLACES = {"lon", "lat", "lng", "longitude", "latitude"}


def keys_of(path):
    with gzip.open(path, "rt") as file:
        header, *rows = csv.reader(file)
    columns = [at for at, name in enumerate(header) if name.lower() in PLACES]
    return [tuple(row[at] for at in columns) for row in rows]


def encoded(keys, room):
    """Those wanted last go where there is no room."""
    after, later = [None] * len(keys), {}
    for at in range(len(keys) - 1, -1, -1):
        after[at] = later.get(keys[at])
        later[keys[at]] = at
    kept, latest, count = {}, [], 0
    for key, then in zip(keys, after):
        count += key not in kept
        kept.pop(key, None)
        if then is not None:
            kept[key] = then
            heapq.heappush(latest, (-then, key))
            while len(kept) > room:
                last, other = heapq.heappop(latest)
                if kept.get(other) == -last:
                    del kept[other]
    return count


for name in ("hdb/hdb_clean.csv.gz", "house/house_clean.csv.gz"):
    keys = keys_of(f"{sys.argv[1]}/{name}")
    random.seed(1)
    drawn = sum(len(set(random.sample(keys, 128))) for _ in range(200)) / 200
    rows = list(range(len(keys)))
    random.shuffle(rows)
    cut = [int(len(rows) * share) for share in (0.7, 0.8)]
    evaluated = [keys[row] for part in (rows[cut[0] : cut[1]], rows[cut[1] :]) for row in sorted(part)]
    lists = ", ".join(f"{encoded(evaluated, mb * 2**20 // 40_000)} with {mb} MB" for mb in (32, 96, 1000))
    print(f"{name}: {len(keys)} rows, {len(set(keys))} keys, {drawn:.1f} of 128; of {len(evaluated)} evaluated {lists}")
