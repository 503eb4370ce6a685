#!/usr/bin/env python3
"""Verdicts of `fet worth` on 40 generated problems whose answer is known. Needs numpy.

worth_problems.py FET FOLDER [--jobs N] [--only NUMBER]

Each problem has a primary with four columns and a label, and two other parties with columns at noisy places.
- decisive: the label depends on the others' columns about as much as on the primary's own.
- useless: the label does not depend on them.
- harmful: the others have 30 columns of noise.
The command prints a line for each problem, and the table of truth against verdict.
"""
import argparse, csv, itertools, json, pathlib, subprocess, sys
import numpy as np

KINDS = ["decisive", "decisive", "decisive", "useless", "harmful"]


def problems():
    cases = itertools.product([600, 2000], ["one", "many"], ["regression", "rare"], enumerate(KINDS))
    for number, (rows, links, task, (repeat, others)) in enumerate(cases):
        yield dict(number=number, rows=rows, links=links, task=task, others=others, seed=100 + number)


def write_tables(folder, rows, links, task, others, seed, **_):
    draw = np.random.default_rng(seed)
    own = draw.normal(size=(rows, 4))
    places = draw.uniform(0, 100, size=(rows if links == "one" else rows // 3, 2))
    which = np.arange(rows) if links == "one" else draw.integers(len(places), size=rows)
    signal = own[:, 0] + 0.7 * np.sin(2 * own[:, 1]) + 0.5 * own[:, 2] * own[:, 3]
    tables = []
    for _ in range(2):
        columns = draw.normal(size=(len(places), 4))
        if others == "decisive":
            signal = signal + (columns[which, 0] + 0.6 * columns[which, 1]) / np.sqrt(2)
        if others == "harmful":
            columns = draw.normal(size=(len(places), 30)) * draw.choice([1, 10], size=30)
        tables.append(columns)
    score = signal + 0.7 * draw.normal(size=rows)
    label = score if task == "regression" else np.where(score > np.quantile(score, 0.8), "yes", "no")

    def key(points):
        return points + draw.normal(size=points.shape) * 10 / np.sqrt(len(places))

    def table(name, header, *columns):
        with open(folder / name, "w", newline="") as file:
            cells = [[f"{v:.5g}" if isinstance(v, float) else v for v in column] for column in columns]
            csv.writer(file).writerows([header, *zip(*cells)])

    at = key(places[which])
    table("primary.csv", ["x", "y", "a", "b", "c", "d", "label"], *at.T.tolist(), *own.T.tolist(), label.tolist())
    for number, columns in enumerate(tables, 1):
        order = draw.permutation(len(places))
        names = [f"v{n}" for n in range(columns.shape[1])]
        table(f"other{number}.csv", ["x", "y", *names], *key(places)[order].T.tolist(), *columns[order].T.tolist())


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("fet")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--jobs", default="2")
    arguments.add_argument("--only", type=int)
    arguments.add_argument("--full", action="store_true", help="without --quick")
    given = arguments.parse_args()
    counts = {}
    for problem in problems():
        if given.only not in (None, problem["number"]):
            continue
        folder = given.folder / f"problem-{problem['number']:02}"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "primary.csv").exists():
            write_tables(folder, **problem)
        command = [given.fet, "worth", "primary.csv", "other1.csv", "other2.csv", "--label", "label", "--jobs", given.jobs]
        command += [] if given.full else ["--quick"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{folder}: {done.stderr[-2000:]}")
        found = json.loads((folder / "worth" / "worth.json").read_text())
        answer = found["answer"]
        truth = "yes" if problem["others"] == "decisive" else "no"
        counts[truth, answer["verdict"]] = counts.get((truth, answer["verdict"]), 0) + 1
        gain, random = answer["gain"], answer["over_random"]
        print(
            f"{problem['number']:2} {problem['others']:9} {problem['rows']:5} rows, {problem['links']:4} link, {problem['task']:10}"
            f" -> {answer['verdict']:9} gain {gain['mean']:+.3f} [{gain['lower']:+.3f}, {gain['upper']:+.3f}],"
            f" over random links [{random['lower']:+.3f}, {random['upper']:+.3f}]; {found['results'][answer['with']]['name']}",
            flush=True,
        )
    for (truth, verdict), count in sorted(counts.items()):
        print(f"truth {truth}, verdict {verdict}: {count}")


if __name__ == "__main__":
    main()
