#!/usr/bin/env python3
"""Time and memory of a run as the tables grow: reading, linking on coordinates, an epoch of FeT-Pool, and predictions.

    rows.py FET [--rows 10000,100000,1000000,10000000] [--threads 2] [--folder DIR] [--out growth.svg]

FET is the program. Needs the packages numpy and pyarrow, and with --out matplotlib. Both tables have the same number of rows, two coordinates and four
numbers; the tables of 10,000,000 rows take 1.1 GB of the folder. Each size is `fet run` of one epoch with K = 5 neighbours and batches of 1,024 rows,
then `fet predict` for all rows of the primary. Every command is a process of its own, and its memory is the largest resident set.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.csv

EXPERIMENT = """name = "rows"

[data]
kind = "linked"
task = "regression"
label = "label"
key_kind = "numbers"

[data.primary]
name = "primary"
file = "primary.csv"
keys = ["x", "y"]

[[data.secondaries]]
name = "other"
file = "other.csv"
keys = ["x", "y"]

[linker]
kind = "nearest"
neighbours = 5

[method]
kind = "fet-pool"
optimizer.learning_rate = 0.003

[encoder]
kind = "mlp"

[train]
batch_size = 1024
epochs = 1
"""


def tables(rows, folder):
    """Writes tables whose records are shifted by a fifth of the usual distance of neighbours."""
    draw = numpy.random.default_rng(7)
    x, y = draw.random(rows) * 1000, draw.random(rows) * 1000
    own, theirs = draw.random((4, rows)), draw.random((4, rows))
    label = own[0] + numpy.sin(6 * own[1]) + 2 * theirs[0] * theirs[1] + 0.1 * draw.standard_normal(rows)
    shift, order = 200 / numpy.sqrt(rows), draw.permutation(rows)
    moved = [(at + shift * draw.standard_normal(rows))[order] for at in (x, y)]
    write(folder / "primary.csv", "x y a b c d label", [x, y, *own, label])
    write(folder / "other.csv", "x y e f g h", [*moved, *(column[order] for column in theirs)])


def write(path, names, columns):
    table = pyarrow.table({name: numpy.round(column, 5) for name, column in zip(names.split(), columns)})
    pyarrow.csv.write_csv(table, path)


def measured(arguments, folder, threads):
    """Runs a command; returns its seconds and largest memory in MB."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    start = time.monotonic()
    process = subprocess.Popen(arguments, cwd=folder, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    messages = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {messages}")
    return time.monotonic() - start, usage.ru_maxrss / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet", type=Path)
    parser.add_argument("--rows", default="10000,100000,1000000,10000000")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="make the temporary tables and runs here")
    parser.add_argument("--out", type=Path, help="picture of the growth")
    arguments = parser.parse_args()
    if arguments.out:
        import matplotlib  # noqa: F401  A missing package must not be found after an hour.
    fet, found = arguments.fet.resolve(), []
    print("| rows of each table | run, s | of it the epoch, s | training rows/s | run, MB | predict, s | rows/s | predict, MB |")
    print("|---|---|---|---|---|---|---|---|")
    for rows in map(int, arguments.rows.split(",")):
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            folder = Path(folder)
            tables(rows, folder)
            (folder / "rows.toml").write_text(EXPERIMENT)
            run, memory = measured([fet, "run", "rows.toml", "--out", "run"], folder, arguments.threads)
            cost = json.loads((folder / "run" / "report.json").read_text())["cost"]
            epoch = cost["seconds"] - cost["setup_seconds"]
            predict = [fet, "predict", "run", "--rows", "primary.csv", "--out", "predictions.csv"]
            seconds, predict_memory = measured(predict, folder, arguments.threads)
            found.append((rows, run, epoch, memory, seconds, predict_memory))
            print(
                f"| {rows:,} | {run:.1f} | {epoch:.1f} | {0.7 * rows / epoch:,.0f} | {memory:,.0f} | {seconds:.1f} | {rows / seconds:,.0f} | {predict_memory:,.0f} |",
                flush=True,
            )
    if arguments.out:
        picture(found, arguments.out)


def picture(found, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, (times, memories) = pyplot.subplots(1, 2, figsize=(10, 4))
    rows = [row[0] for row in found]
    for at, name in ((1, "whole run"), (2, "epoch with its evaluation"), (4, "predict")):
        times.loglog(rows, [row[at] for row in found], "o-", label=name)
    times.set(title="Time", xlabel="rows of each table", ylabel="seconds")
    for at, name in ((3, "run"), (5, "predict")):
        memories.loglog(rows, [row[at] for row in found], "o-", label=name)
    memories.loglog(rows, [rows * 13 * 4 / 1e6 for rows in rows], "k:", label="the tables as 32-bit numbers")
    memories.set(title="Memory", xlabel="rows of each table", ylabel="MB")
    for axes in (times, memories):
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
