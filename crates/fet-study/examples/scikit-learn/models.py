#!/usr/bin/env python3
"""Classifiers of scikit-learn as a program of `fet study`. docs/other-programs.md explains the calls and the files.

    fet study models.toml --program ./models.py
"""

import argparse, csv, hashlib, json, sys, time, tomllib
from pathlib import Path

import numpy as np, sklearn
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def answer(file, changes, seed):
    """The answer to a question of `fet study`: everything that the result of a run depends on."""
    tables = tomllib.loads(file.read_text())
    used = ("data", "split", "model")
    settings = {f"{table}.{name}": value for table in used for name, value in tables[table].items()}
    for path, value in (change.split("=", 1) for change in changes if not change.startswith("name=")):
        if path not in settings:
            return {"error": f"{path}: unknown setting; the settings are {', '.join(settings)}"}
        settings[path] = type(settings[path])(value)
    checksum = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    program = {"name": "scikit-learn", "version": f"{sklearn.__version__} {checksum(Path(__file__))}"}
    data = checksum(file.parent / settings["data.primary"]["file"])
    return {"program": program, "experiment": settings | {"seed": seed}, "data": data}


def run(file, own, out):
    """Trains a model, and writes its predictions and its report."""
    begin, settings = time.monotonic(), own["experiment"]
    table = list(csv.DictReader((file.parent / settings["data.primary"]["file"]).open()))
    label = np.array([row.pop(settings["data.label"]) for row in table])
    columns, rows = np.array([list(row.values()) for row in table], float), np.arange(len(table))
    split = lambda rows, part: train_test_split(
        rows, test_size=settings[f"split.{part}"], random_state=settings["seed"], stratify=label[rows]
    )
    fitted, test = split(rows, "test")
    train, validation = split(fitted, "validation")
    if settings["model.kind"] == "logistic":
        model = make_pipeline(StandardScaler(), LogisticRegression(C=settings["model.C"], max_iter=1000))
    else:
        model = RandomForestClassifier(settings["model.trees"], random_state=settings["seed"])
    model.fit(columns[train], label[train])
    with (out / "predictions.csv").open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["row", "part", "label", *(f"probability of {name}" for name in model.classes_)])
        for part, chosen in {"validation": validation, "test": test}.items():
            for row, output in zip(chosen, model.predict_proba(columns[chosen])):
                writer.writerow([row, part, label[row], *output])
    counts = {"train": len(train), "validation": len(validation), "test": len(test)}
    report = own | {"metric": "accuracy", "rows": counts, "cost": {"seconds": time.monotonic() - begin}}
    (out / "report.json").write_text(json.dumps(report))


parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["show", "run"])
parser.add_argument("file", type=Path)
parser.add_argument("--batch", action="store_true")
parser.add_argument("--set", action="append", default=[])
parser.add_argument("--seed", type=int)
parser.add_argument("--out", type=Path)
given = parser.parse_args()
if given.command == "run":
    run(given.file, answer(given.file, given.set, given.seed), given.out)
else:
    for question in map(json.loads, sys.stdin):
        print(json.dumps(answer(given.file, given.set + question["set"], question["seed"])))
