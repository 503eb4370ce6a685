"""LightGBM on the rows of a finished run of `gbdt-solo`: how far the built-in trees are from it.

    python3 -m venv venv && venv/bin/pip install lightgbm pandas
    fet run experiments/hdb.toml --set method.kind=gbdt-solo --out run
    venv/bin/python benches/trees_against_lightgbm.py run data/hdb/hdb_clean.csv.gz resale_price

The run's `predictions.csv` says which rows were its validation and test rows; the others are trained on. Both choose the number of
trees by the validation rows.
"""

import sys

import lightgbm
import numpy as np
import pandas as pd


def rmse(found, expected):
    return float(np.sqrt(np.mean((found - expected) ** 2)))


def main(run, table, label):
    data = pd.read_csv(table)
    labels = data.pop(label).to_numpy(dtype=float)
    columns = data.to_numpy(dtype=float)
    predicted = pd.read_csv(f"{run}/predictions.csv")
    rows = {part: own["row"].to_numpy() for part, own in predicted.groupby("part")}
    validation, test = rows["validation"], rows["test"]
    own = predicted[predicted["part"] == "test"]
    if not np.allclose(labels[test], own["label"]):
        sys.exit(f"{run}: its labels are not those of {table}")
    training = np.setdiff1d(np.arange(len(labels)), np.concatenate([validation, test]))
    model = lightgbm.LGBMRegressor(
        n_estimators=4000,
        learning_rate=0.05,
        num_leaves=127,
        min_child_samples=10,
        subsample=0.8,
        subsample_freq=1,
        colsample_bytree=0.5,
        verbose=-1,
        random_state=0,
    )
    model.fit(
        columns[training],
        labels[training],
        eval_set=[(columns[validation], labels[validation])],
        callbacks=[lightgbm.early_stopping(100, verbose=False)],
    )
    theirs = rmse(model.predict(columns[test]), labels[test])
    ours = rmse(own["prediction"], own["label"])
    print(f"LightGBM {theirs:.3f} ({model.best_iteration_} trees), fet {ours:.3f}: {100 * (ours / theirs - 1):+.2f} %")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
