#!/usr/bin/env python3
"""The range of the expected precision of `fet link --threshold auto`, on generated tables of known truth.

    threshold_range.py FET [--tables 252]

FET is the program (`fet` or `fet-link`). The tables have people (four fields) or products (one title, or families of titles that differ in the
model number and colour), with 200 or 800 rows, of which none, 2, 5, 10, 20, 50 or 80 % have a match with planted errors, by fixed seeds. The
script needs no package. It prints, for expected precisions from 70 % on and below: the number of estimates, how many precisions were within
the range (from 70 % on), how many were more than 20 points below the expected one, and how many estimates warned.
"""

import argparse
import csv
import itertools
import random
import re
import subprocess
import tempfile
from pathlib import Path

ADJECTIVES = "red blue green heavy light compact wireless portable steel cotton leather digital smart classic mini silent thermal vintage".split()
NOUNS = "kettle drill lamp speaker keyboard mouse monitor chair desk jacket boot tent bottle camera printer router cable toaster fan watch".split()
BRANDS = "Acme Zenith Norvex Tallis Brumo Quanta Heliox Marlow Pinter Oskara Dunlow Veltra Kestrel Sabine Ruxton Lanmore".split()
NAMES = "james mary robert patricia john jennifer michael linda david elizabeth william barbara anna lukas emma noah olivia liam sophia".split()
SYLLABLES = [consonant + vowel for consonant in "bdklmnrstv" for vowel in "aeiou"]
SHARES = [0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 0.8]
KINDS = ["people", "products", "families"]


def typing_error(rng, text):
    """Deletes, replaces, swaps or inserts a letter."""
    if len(text) < 2:
        return text
    at, letter = rng.randrange(len(text) - 1), rng.choice("abcdefghijklmnopqrstuvwxyz")
    changed = [text[at + 1:], letter + text[at + 1:], text[at + 1] + text[at] + text[at + 2:], letter + text[at:]]
    return text[:at] + rng.choice(changed)


def surname(rng):
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.choice([2, 3, 3, 4]))) + rng.choice(["n", "son", "r", "ck", ""])


def person(rng):
    street = rng.choice(["street", "road", "lane", "avenue"])
    return [rng.choice(NAMES), surname(rng), f"{rng.randrange(1, 200)} {surname(rng)} {street}", surname(rng) + "ton"]


def product(rng):
    words = [rng.choice(BRANDS), rng.choice(ADJECTIVES), rng.choice(ADJECTIVES), rng.choice(NOUNS)]
    return [" ".join(words) + f" {rng.choice('ABCDEFGH')}{rng.randrange(100, 999)}"]


def family(rng):
    """Two to four titles that differ in the last digit of the model and in the colour."""
    [title] = product(rng)
    digits = [(int(title[-1]) + 3 * variant) % 10 for variant in range(rng.choice([2, 3, 4]))]
    return [[f"{title[:-1]}{digit} {rng.choice(['black', 'white', 'silver'])}"] for digit in digits]


def other_member(rng, title):
    """A title of the same words with another model."""
    words = title.split()
    return [" ".join(words[:-2] + [rng.choice("ABCDEFGH") + str(rng.randrange(100, 999)), words[-1]])]


def with_errors(rng, kind, row):
    if kind == "people":
        row = list(row)
        for _ in range(rng.randrange(3)):
            column = rng.randrange(len(row))
            row[column] = typing_error(rng, row[column])
        if rng.random() < 0.1:
            row[rng.randrange(len(row))] = ""
        return row
    words = row[0].split()
    change = rng.randrange(5)
    if change == 0:
        words[-1] = words[-1].lower()
    elif change == 1:
        del words[rng.randrange(1, 3)]
    elif change == 2:
        words.append(words.pop(0))
    elif change == 3:
        words.append(rng.choice(["black", "white", "new", "2-pack", "(EU)"]))
    return [typing_error(rng, " ".join(words)) if rng.random() < 0.5 else " ".join(words)]


def tables(rng, kind, rows, matches):
    """Two tables of `rows` rows in random order, and the pairs of row numbers that match."""
    new = person if kind == "people" else product
    ours = [new(rng) for _ in range(rows)]
    if kind == "families":
        ours = list(itertools.islice(itertools.chain.from_iterable(family(rng) for _ in itertools.count()), rows))
    theirs = [with_errors(rng, kind, ours[row]) for row in range(matches)]
    while len(theirs) < rows:
        resembling = kind == "families" and rng.random() < 0.6
        theirs.append(other_member(rng, rng.choice(ours)[0]) if resembling else new(rng))
    orders = [rng.sample(range(rows), rows) for _ in range(2)]
    places = [{row: place for place, row in enumerate(order)} for order in orders]
    return [ours[row] for row in orders[0]], [theirs[row] for row in orders[1]], {(places[0][row], places[1][row]) for row in range(matches)}


def write(path, names, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])


def measure(program, folder, columns, truth, more):
    """Expected precision, range, precision and warning of one estimate; None if no threshold was estimated."""
    command = [program, "link", "a.csv", "b.csv", "--keys", ",".join(columns), "--threshold", "auto", "--set", "k=1", "--out", "links.csv", *more]
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    links = {(int(row[0]), int(row[1])) for row in list(csv.reader((folder / "links.csv").open()))[1:]}
    found = re.search(r"expected precision ([\d.]+) %", output)
    if not found:
        return None, output
    limits = re.search(r"from (\d+) to (\d+) %", output)
    return (float(found[1]), [int(limit) for limit in limits.groups()] if limits else None, 100 * len(links & truth) / len(links)), output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet")
    parser.add_argument("--tables", type=int, default=252)
    arguments = parser.parse_args()
    settings = list(itertools.product(KINDS, SHARES, [200, 800]))
    counts = {}
    for seed in range(arguments.tables):
        kind, share, rows = settings[seed % len(settings)]
        rng = random.Random(seed)
        columns = ["given", "surname", "street", "town"] if kind == "people" else ["title"]
        ours, theirs, truth = tables(rng, kind, rows, round(rows * share))
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            write(folder / "a.csv", columns, ours)
            write(folder / "b.csv", columns, theirs)
            for name, more in [("best record", []), ("one to one", ["--assign", "one-to-one"])]:
                found, output = measure(arguments.fet, folder, columns, truth, more)
                place = "none, or doubtful" if found is None else "70 % on" if found[0] >= 70 else "below 70 %"
                count = counts.setdefault((name, place), [0, 0, 0, 0, 0])
                count[0] += 1
                count[3] += "warning:" in output
                count[4] += share == 0
                if found:
                    expected, limits, precision = found
                    count[1] += limits is not None and limits[0] - 0.5 <= precision <= limits[1] + 0.5
                    count[2] += precision < expected - 20
    print("| pairs | expected precision | estimates | within the range | more than 20 points below | with a warning | tables without a match |")
    print("|---|---|---|---|---|---|---|")
    for (name, place), count in sorted(counts.items()):
        print(f"| {name} | {place} | {' | '.join(map(str, count))} |")


if __name__ == "__main__":
    main()
