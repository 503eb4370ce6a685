"""LightGBM next to the built-in trees: the same rows, the same settings, the same number of threads.

    python3 -m venv venv && venv/bin/pip install lightgbm pandas
    venv/bin/python benches/trees_against_lightgbm.py target/release/fet experiments/hdb.toml data/hdb/hdb_clean.csv.gz

Runs `gbdt-solo` on the experiment's primary table and LightGBM on the rows that the run's `predictions.csv` names, in
turns, `--repeats` times. Both grow all trees, choose their number by the validation rows, and predict; the seconds of
`fet` are the report's `cost.seconds`, which include the evaluations. Prints the medians of seconds and metric.
Columns with texts become integer codes for LightGBM, as its categorical columns do not exist in `fet`.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import lightgbm
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")


def measure(folder, experiment, options, seed):
    """Returns the folder of a run of `gbdt-solo`, and its report."""
    run = folder / f"run{seed}"
    settings = {"kind": "gbdt-solo", "trees": options.trees, "leaves": options.leaves, "learning_rate": 0.05}
    settings |= {"leaf_weight": 10.0, "row_share": 0.8, "column_share": options.column_share}
    command = [options.fet, "run", experiment, "--seed", str(seed), "--out", run]
    for name, value in settings.items():
        command += ["--set", f"method.{name}={value}"]
    for assignment in options.set:
        command += ["--set", assignment]
    environment = os.environ | {"RAYON_NUM_THREADS": str(options.threads), "OMP_NUM_THREADS": str(options.threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return run, json.loads((run / "report.json").read_text())


def compare(run, report, table, options):
    """Returns the seconds and the metric of LightGBM on the rows of a run."""
    labels = table[report["experiment"]["data"]["label"]].to_numpy(dtype=float)
    columns = table.drop(columns=report["experiment"]["data"]["label"])
    for name in columns.select_dtypes(exclude="number"):
        columns[name] = pd.factorize(columns[name])[0]
    columns = columns.to_numpy(dtype=float)
    predicted = pd.read_csv(run / "predictions.csv")
    rows = {part: own["row"].to_numpy() for part, own in predicted.groupby("part")}
    validation, test = rows["validation"], rows["test"]
    own = predicted[predicted["part"] == "test"]
    if not np.allclose(labels[test], own["label"]):
        sys.exit(f"{run}: its labels are not those of the table")
    training = np.setdiff1d(np.arange(len(labels)), np.concatenate([validation, test]))
    model = lightgbm.LGBMRegressor(
        n_estimators=options.trees,
        learning_rate=0.05,
        num_leaves=options.leaves,
        min_child_samples=10,
        min_child_weight=0.0,
        subsample=0.8,
        subsample_freq=1,
        colsample_bytree=options.column_share,
        n_jobs=options.threads,
        verbose=-1,
        random_state=report["seed"],
    )
    start = time.perf_counter()
    model.fit(
        columns[training],
        labels[training],
        eval_set=[(columns[validation], labels[validation])],
        callbacks=[lightgbm.early_stopping(options.trees, verbose=False)],
    )
    found = model.predict(columns[test])
    seconds = time.perf_counter() - start
    return seconds, float(np.sqrt(np.mean((found - labels[test]) ** 2))), model.best_iteration_


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fet")
    parser.add_argument("experiment", help="an experiment of a regression with a table of the primary")
    parser.add_argument("table", help="the primary's table, read by pandas")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the experiment")
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--leaves", type=int, default=127)
    parser.add_argument("--column-share", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    table = pd.read_csv(options.table)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.repeats):
            run, report = measure(pathlib.Path(folder), options.experiment, options, seed)
            ours.append((report["cost"]["seconds"], report["best"]["test"]))
            seconds, metric, trees = compare(run, report, table, options)
            theirs.append((seconds, metric))
            print(
                f"seed {seed}: fet {ours[-1][0]:.2f} s, RMSE {ours[-1][1]:.4f}; "
                f"LightGBM {seconds:.2f} s, RMSE {metric:.4f} ({trees} trees)",
                flush=True,
            )
    middle = lambda pairs, at: statistics.median(pair[at] for pair in pairs)
    ratio = statistics.median(a[0] / b[0] for a, b in zip(ours, theirs))
    worse = statistics.median(a[1] / b[1] - 1 for a, b in zip(ours, theirs))
    print(
        f"medians: fet {middle(ours, 0):.2f} s, {middle(ours, 1):.4f}; LightGBM {middle(theirs, 0):.2f} s, "
        f"{middle(theirs, 1):.4f}; time {ratio:.2f} times, RMSE {100 * worse:+.2f} %"
    )


if __name__ == "__main__":
    main()
