#!/usr/bin/env python3
"""Two tables of made-up people, of whom 70 % stand in both, for timing links of many rows.

    people.py FEBRL ROWS FOLDER

FEBRL is the folder of FEBRL's data sets 1 to 4 (CSV), whose names, streets and places are drawn from. Writes a.csv, b.csv and truth.csv into
FOLDER: a person in both has up to four typing errors in b.csv, where 5 % of such persons' cells are blank. The same ROWS give the same tables.
"""

import csv
import random
import sys
from pathlib import Path

FIELDS = ["given_name", "surname", "address_1", "suburb", "postcode", "state", "date_of_birth"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHARED = 0.7


def main(source, count, folder):
    draw = random.Random(5)
    pool = {field: [] for field in FIELDS}
    for path in sorted(Path(source).glob("*.csv")):
        with open(path, newline="") as file:
            for row in csv.DictReader(file, skipinitialspace=True):
                for field in FIELDS[:-1]:
                    if row[field].strip():
                        pool[field].append(row[field].strip())

    def person():
        return [*(draw.choice(pool[field]) for field in FIELDS[:-1]), str(draw.randint(19200101, 20091231))]

    def mistyped(cells):
        cells = list(cells)
        for _ in range(draw.randint(0, 4)):
            field = draw.randrange(len(cells))
            text = cells[field]
            if text:
                at, letter = draw.randrange(len(text)), draw.choice(LETTERS)
                cells[field] = draw.choice([text[:at] + text[at + 1 :], text[:at] + letter + text[at:], text[:at] + letter + text[at + 1 :]])
        return ["" if draw.random() < 0.05 else cell for cell in cells]

    both = [person() for _ in range(int(SHARED * count))]
    alone = count - len(both)
    first = [(f"p{i}", cells) for i, cells in enumerate(both)] + [(f"a{i}", person()) for i in range(alone)]
    second = [(f"p{i}", mistyped(cells)) for i, cells in enumerate(both)] + [(f"b{i}", person()) for i in range(alone)]
    for name, rows in (("a.csv", first), ("b.csv", second)):
        draw.shuffle(rows)
        with open(Path(folder) / name, "w", newline="") as file:
            csv.writer(file).writerows([["id", *FIELDS], *([key, *cells] for key, cells in rows)])
    with open(Path(folder) / "truth.csv", "w", newline="") as file:
        csv.writer(file).writerows([["a", "b"], *([f"p{i}", f"p{i}"] for i in range(len(both)))])


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
