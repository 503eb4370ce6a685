#!/usr/bin/env python3
"""Learning curves of the public problems, with their controls, the true records, and LightGBM on joined tables.

    python3 -m venv venv && venv/bin/pip install numpy pandas scikit-learn lightgbm matplotlib
    venv/bin/python benches/public_problems.py target/release/fet FOLDER [--only NAME] [--shares 0.1,0.3,1] [--jobs 2]
        [--variant NAME ...] [--peers RealMLP,TabM]

For each problem of `fet data list` the command obtains the tables (`fet data get`), runs its study with the shares of the
training rows as an axis, and trains LightGBM on the same training rows of two joined tables. The join by hand has the
nearest record of each party, its distance, and the mean of the five nearest: by numbers and times, scaled by their
deviations, or by TF-IDF of the character n-grams of texts. The other table has the true records, where they are known. A
training share below 1 of LightGBM takes as many rows, drawn by the same seed. The command writes FOLDER/NAME.svg and
FOLDER/NAME.md; an interrupted command resumes. `bike` needs --from with the folder of its files. --rows limits the
primary's rows. --variant runs only some variants of the study. --peers trains models of pytabkit (XGB, CatBoost, RealMLP,
TabM) on the join by hand and all labels, with their recommended settings (TD, or D for TabM); they split validation rows
off on their own.

The intervals and p-values are those of the corrected resampled t-test (Nadeau and Bengio 2003) over the seeds, after
Holm's correction for the four comparisons with the same number of labels.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tomllib
import warnings

import lightgbm
import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import NearestNeighbors

warnings.filterwarnings("ignore")
# Small files with the same bytes each time.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fet"})

AXIS = """
[ablation.axes]
"split.training_share" = {shares}
"""
BY_HAND, ON_TRUE = "LightGBM, join by hand", "LightGBM, true records"
METHODS = ["FeT-Trees", "FeT-Pool with trees"]


def controls(method):
    return [f"{method}, alone", f"{method}, random links", "boosted trees, alone", "linear, alone"]


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout


def seconds(values):
    return (pd.to_datetime(values, format="mixed") - pd.Timestamp("1970-01-01")).dt.total_seconds()


def is_time(values):
    return values.dtype.kind not in "ifb" and pd.to_datetime(values, errors="coerce", format="mixed").notna().mean() > 0.9


def numbers(table, columns):
    """Returns the columns with dates and times as numbers, and texts as categories."""
    found = {}
    for name in columns:
        values = table[name]
        if values.dtype.kind in "ifb":
            found[name] = values.astype(float)
        elif re.search(r"at|date|day|time|born", name) and is_time(values):
            times = pd.to_datetime(values, errors="coerce", format="mixed")
            found[name] = (times - pd.Timestamp("1970-01-01")).dt.total_seconds()
            found |= {f"{name}_hour": times.dt.hour, f"{name}_weekday": times.dt.weekday, f"{name}_day": times.dt.dayofyear}
        else:
            found[name] = pd.Series(pd.factorize(values)[0], index=values.index).astype("category")
    return pd.DataFrame(found)


def nearest(own, primary, table, party):
    """Returns the distances and numbers of the five records with the nearest keys for each of the primary's rows."""
    if any(own[name].dtype.kind not in "ifb" and not is_time(own[name]) for name in primary["keys"]):
        own_text, their_text = (
            frame[keys].fillna("").astype(str).agg(" ".join, axis=1)
            for frame, keys in ((own, primary["keys"]), (table, party["keys"]))
        )
        forms = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)).fit(pd.concat([own_text, their_text]))
        keys, theirs, metric = forms.transform(own_text), forms.transform(their_text), "cosine"
    else:
        keys, theirs = (
            np.column_stack([seconds(frame[name]) if is_time(frame[name]) else frame[name] for name in names])
            for frame, names in ((own, primary["keys"]), (table, party["keys"]))
        )
        scale = theirs.std(axis=0)
        scale[scale == 0] = 1
        keys, theirs, metric = keys / scale, theirs / scale, "euclidean"
    return NearestNeighbors(n_neighbors=5, metric=metric).fit(theirs).kneighbors(keys)


def joined(folder, data, true):
    """Returns the primary's columns joined with the true or the nearest records of each party; no table without them."""
    primary = data["primary"]
    own = pd.read_csv(folder / primary["file"])
    label = own[data["label"]]
    parts = [numbers(own, [name for name in own if name not in [data["label"], *primary.get("drop", [])]])]
    for number, party in enumerate(data["secondaries"]):
        file = folder / (party["file"].replace(".csv", "-true.csv") if true else party["file"])
        if not file.exists():
            return None, label
        table = pd.read_csv(file)
        columns = [name for name in table if name not in [*party["keys"], *party.get("drop", [])]]
        values = numbers(table, columns).add_suffix(f"_{number}")
        if not true:
            distance, near = nearest(own, primary, table, party)
            means = values.select_dtypes("number").to_numpy(float)[near]
            names = [f"{name}_mean" for name in values.select_dtypes("number")]
            parts.append(pd.DataFrame(np.nanmean(means, axis=1), columns=names))
            parts.append(pd.DataFrame({f"distance_{number}": distance[:, 0]}))
            values = values.iloc[near[:, 0]]
        parts.append(values.reset_index(drop=True))
    return pd.concat(parts, axis=1), label


def measured(metric, label, found):
    if metric == "rmse":
        return float(np.sqrt(np.mean((found - label) ** 2)))
    if metric == "accuracy":
        return float(np.mean(found.argmax(1) == label))
    score = roc_auc_score if metric == "auc-roc" else average_precision_score
    return float(score(label, found[:, 1]))


def parts_of(cell, rows):
    """Returns the seed of a finished cell, its validation and test rows, and the other rows."""
    predicted = pd.read_csv(cell / "predictions.csv")
    seed = json.loads((cell / "report.json").read_text())["seed"]
    parts = {part: own["row"].to_numpy() for part, own in predicted.groupby("part")}
    return seed, parts, np.setdiff1d(np.arange(rows), np.concatenate([parts["validation"], parts["test"]]))


def peer_on(name, columns, label, cell, metric):
    """Returns the metric of a model of pytabkit on the test rows of a finished cell."""
    from pytabkit.models.sklearn import sklearn_interfaces

    seed, parts, training = parts_of(cell, len(label))
    rows = np.concatenate([training, parts["validation"]])
    numbers = columns.select_dtypes("number")
    columns = columns.assign(**numbers.fillna(numbers.iloc[rows].median()).fillna(0))
    chosen = {} if metric in ("rmse", "accuracy") else {"val_metric_name": "1-auc_ovr"}
    kind = f"{name}_{'D' if name == 'TabM' else 'TD'}_{'Regressor' if metric == 'rmse' else 'Classifier'}"
    share = len(parts["validation"]) / len(rows)
    model = getattr(sklearn_interfaces, kind)(
        random_state=seed, device="cpu", n_threads=1, val_fraction=share, **chosen
    )
    model.fit(columns.iloc[rows], label[rows])
    test = columns.iloc[parts["test"]]
    found = model.predict(test) if metric == "rmse" else model.predict_proba(test)
    return measured(metric, label[parts["test"]], found)


def lightgbm_on(columns, label, cell, metric, share):
    """Returns the metric of LightGBM on the test rows of a finished cell."""
    seed, parts, rest = parts_of(cell, len(label))
    training = np.random.default_rng(seed).permutation(rest)[: round(share * len(rest))]
    kind = lightgbm.LGBMRegressor if metric == "rmse" else lightgbm.LGBMClassifier
    model = kind(n_estimators=2000, learning_rate=0.05, num_leaves=31, verbose=-1, n_jobs=1, random_state=seed)
    model.fit(
        columns.iloc[training],
        label[training],
        eval_set=[(columns.iloc[parts["validation"]], label[parts["validation"]])],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
        **({} if metric in ("rmse", "accuracy") else {"eval_metric": "auc"}),
    )
    test = parts["test"]
    found = model.predict(columns.iloc[test]) if metric == "rmse" else model.predict_proba(columns.iloc[test])
    return measured(metric, label[test], found)


def curve(fet, folder, shares, jobs, variants):
    """Runs the study of a problem, or only these variants. Returns its results."""
    study = (folder / "experiment.toml").read_text() + AXIS.format(shares=shares)
    (folder / "curve.toml").write_text(study)
    only = [part for variant in variants for part in ("--only", variant)]
    run([fet, "study", "curve.toml", "--jobs", str(jobs), "--out", "runs", *only], folder)
    return json.loads((runs(folder) / "results.json").read_text())


def runs(folder):
    """Returns the folder of the study's results."""
    return next((folder / "runs").iterdir())


def with_lightgbm(folder, results, shares, peers):
    """Returns the test figures of LightGBM by table and share, one for each seed, and prints those of the peers."""
    with (folder / "experiment.toml").open("rb") as file:
        experiment = tomllib.load(file)
    by_hand, label = joined(folder, experiment["data"], true=False)
    on_true, _ = joined(folder, experiment["data"], true=True)
    classes = experiment["data"]["task"] != "regression"
    label = pd.factorize(label, sort=True)[0] if classes else label.to_numpy(float)
    cells = pd.read_csv(runs(folder) / "results.csv")
    cells = cells[cells["variant"] == f"boosted trees, alone · training_share={max(shares)}"]
    paths = [runs(folder) / cell for cell in cells.sort_values("seed")["cell"]]
    for name in peers:
        found = [peer_on(name, by_hand, label, cell, results["metric"]) for cell in paths]
        print(f"| {name}, join by hand, all labels | {np.mean(found):.4g} ± {np.std(found, ddof=1):.2g} |", flush=True)
    return {
        name: {share: [lightgbm_on(columns, label, cell, results["metric"], share) for cell in paths] for share in shares}
        for name, columns in ((BY_HAND, by_hand), (ON_TRUE, on_true))
        if columns is not None
    }


def corrected(differences, ratio):
    """Returns the mean, the 95 % interval and p of paired differences; `ratio` is test rows to training rows."""
    count, mean = len(differences), np.mean(differences)
    error = np.sqrt((1 / count + ratio) * np.var(differences, ddof=1))
    if error == 0:
        return mean, mean, mean, float(mean == 0)
    width = student.ppf(0.975, count - 1) * error
    return mean, mean - width, mean + width, 2 * student.sf(abs(mean) / error, count - 1)


def holm(values):
    """Returns the p-values after Holm's correction."""
    order, found, most = np.argsort(values), np.zeros(len(values)), 0.0
    for place, at in enumerate(order):
        most = max(most, min(1.0, values[at] * (len(values) - place)))
        found[at] = most
    return found


def leads(method, figures, shares, metric, ratio):
    """Returns the lines of a table: the lead of the method over each control, positive if it is better."""
    sign = -1 if metric in ("rmse", "mae", "log-loss") else 1
    lines = ["", f"| lead of {method} over | " + " | ".join(map(str, shares)) + " |", "|---" * (len(shares) + 1) + "|"]
    cells = {control: [] for control in controls(method)}
    for share in shares:
        found = [
            corrected(sign * np.subtract(figures[method][share], figures[control][share]), ratio) for control in cells
        ]
        for control, (mean, lower, upper, _), p in zip(cells, found, holm([test[3] for test in found])):
            cells[control].append(f"{mean:+.3g} [{lower:+.3g}, {upper:+.3g}], p {p:.2g}")
    return lines + [f"| {control} | " + " | ".join(row) + " |" for control, row in cells.items()]


def report(folder, name, results, lightgbm_figures, ratio):
    """Writes the picture and the tables of a problem."""
    figures = {}
    for variant in results["variants"]:
        share = variant["axes"]["split.training_share"]
        figures.setdefault(variant["variant"], {})[float(share)] = variant["tests"]
    figures |= lightgbm_figures
    shares = sorted(lightgbm_figures[BY_HAND])
    lines = [f"| {name}: test {results['metric']}, training share | " + " | ".join(map(str, shares)) + " |"]
    lines.append("|---" * (len(shares) + 1) + "|")
    figure, axes = plt.subplots(figsize=(7, 4))
    for variant, by_share in figures.items():
        means = [np.mean(by_share[share]) for share in shares]
        errors = [np.std(by_share[share], ddof=1) for share in shares]
        cells = (f"{mean:.4g} ± {error:.2g}" for mean, error in zip(means, errors))
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
        axes.errorbar(shares, means, errors, label=variant, marker="o", capsize=2)
    for method in METHODS:
        if all(variant in figures for variant in [method, *controls(method)]):
            lines += leads(method, figures, shares, results["metric"], ratio)
    axes.set(xscale="log", xlabel="share of the training rows", ylabel=f"test {results['metric']}", title=name)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder.parent / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)
    text = "\n".join(lines) + "\n"
    (folder.parent / f"{name}.md").write_text(text)
    print(text, flush=True)


def test_ratio(folder):
    """Returns the number of test rows for each training row of the whole training set."""
    cells = runs(folder).glob("cells/boosted-trees-alone-*/report.json")
    rows = max((json.loads(cell.read_text())["rows"] for cell in cells), key=lambda rows: rows["train"])
    return rows["test"] / rows["train"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fet", type=pathlib.Path)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--only")
    arguments.add_argument("--shares", default="0.1,0.3,1")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--from", dest="source", type=pathlib.Path)
    arguments.add_argument("--rows")
    arguments.add_argument("--variant", action="append", default=[], help="run only this variant; can be repeated")
    arguments.add_argument("--peers", default="", help="models of pytabkit, such as RealMLP,TabM")
    given = arguments.parse_args()
    fet = given.fet.resolve()
    shares = [float(share) for share in given.shares.split(",")]
    names = re.findall(r"^(\S+)  ", run([fet, "data", "list"], None), re.MULTILINE)
    for name in names:
        if given.only not in (None, name):
            continue
        folder = given.folder / name
        if not folder.exists():
            given.folder.mkdir(parents=True, exist_ok=True)
            source = ["--from", given.source.resolve()] if given.source else []
            source += ["--rows", given.rows] if given.rows else []
            run([fet, "data", "get", name, "--out", name, *source], given.folder)
        results = curve(fet, folder, shares, given.jobs, given.variant)
        peers = list(filter(None, given.peers.split(",")))
        report(folder, name, results, with_lightgbm(folder, results, shares, peers), test_ratio(folder))


if __name__ == "__main__":
    main()
