"""Tests of mistakes that users of pandas make: each gets one clear message, and no wrong answer."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import fet
from conftest import KEYS

Tables = tuple[pd.DataFrame, pd.DataFrame]
Make = Callable[..., Any]
LABELS = ["amount", "wet"]


def test_a_frame_in_place_of_a_table_is_named(tables: Tables) -> None:
    farms, stations = tables
    X, y, party = farms.drop(columns=LABELS), farms["wet"], fet.Table(stations, KEYS)
    for wrong in ([stations], party, stations, None, "stations.csv"):
        with pytest.raises(fet.InputError, match=r"fet\.Table\(frame, keys"):
            fet.FeTPoolClassifier(KEYS, wrong, epochs=1).fit(X, y)
    for tables_of_link in ((farms, party), (party, stations)):
        with pytest.raises(fet.InputError, match=r"fet\.Table\(frame, keys"):
            fet.link(*tables_of_link)
    with pytest.raises(fet.InputError, match="DataFrame"):
        fet.Problem(farms, [party], "wet")


def test_a_missing_number_has_no_distance_and_a_missing_identifier_no_link(tables: Tables) -> None:
    farms, stations = tables
    X, y = farms.drop(columns=LABELS), farms["wet"]
    holed = stations.assign(lon=stations["lon"].where(stations.index != 3))
    party = fet.Table(holed, KEYS, name="weather")
    with pytest.raises(fet.InputError, match=r"weather: key column `lon`: 1 of 200 rows have no number"):
        fet.FeTPoolClassifier(KEYS, [party], epochs=1).fit(X, y)
    for lacking in (holed, polars.DataFrame({name: holed[name].to_list() for name in KEYS})):
        with pytest.raises(fet.InputError, match="`lon`: must be a number; it is missing"):
            fet.link(fet.Table(farms, KEYS), fet.Table(lacking, KEYS), "nearest", {"neighbours": 1})
    own = X.assign(lat=X["lat"].where(X.index != 5))
    with pytest.raises(fet.InputError, match="`lat`: 1 of"):
        fet.FeTPoolClassifier(KEYS, [fet.Table(stations, KEYS)], epochs=1).fit(own, y)
    # Identifiers are compared for equality.
    for kind in ("Int64", "Float64", "float64"):
        ids = pd.DataFrame({"k": pd.array([1, 2, None, 4], dtype="Int64").astype(kind)})
        others = pd.DataFrame({"k": pd.array([4, None, 1], dtype="Int64").astype(kind)})
        pairs = fet.link(fet.Table(ids, "k"), fet.Table(others, "k"), "exact", {"neighbours": 1}).to_pandas()
        assert list(zip(pairs["primary_row"], pairs["secondary_row"])) == [(0, 2), (3, 0)], kind
    with pytest.raises(fet.InputError, match="must have key columns"):
        fet.link(fet.Table(farms), fet.Table(stations, KEYS))


def test_columns_that_are_absent_or_have_no_names_are_named(tables: Tables) -> None:
    farms, stations = tables
    X, y = farms.drop(columns=LABELS), farms["wet"]
    with pytest.raises(fet.InputError, match=r"weather: the frame lacks the key column `lat`; its columns are lon"):
        party = fet.Table(stations.drop(columns="lat"), KEYS, name="weather")
        fet.FeTPoolClassifier(KEYS, [party], epochs=1).fit(X, y)
    with pytest.raises(fet.InputError, match="0 is a int"):
        fet.Table(stations, [0, 1])
    with pytest.raises(fet.InputError, match="`lon` twice"):
        fet.Table(stations, ["lon", "lon"])
    for cells in ([1, "a"] * 100, [1j] * 200):
        with pytest.raises(fet.InputError, match="cannot be an Arrow table"):
            fet.FeTPoolClassifier(KEYS, [fet.Table(stations.assign(rain=cells), KEYS)], epochs=1).fit(X, y)


def test_a_feature_may_have_the_name_of_the_label(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X = farms.drop(columns=LABELS).rename(columns={"own": "label"})
    assert len(classifier().fit(X, farms["wet"].to_numpy()).predict(X)) == len(X)
    assert len(classifier().fit(X, farms["wet"].rename("label")).predict(X)) == len(X)


def test_a_class_that_means_a_missing_cell_is_refused(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    for name in ("NA", "None", " "):
        with pytest.raises(fet.InputError, match="means a missing label"):
            classifier().fit(farms.drop(columns=LABELS), farms["wet"].replace("no", name))


def test_a_table_of_settings_changes_what_it_names(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    model = classifier(epochs=2, settings={"train": {"batch_size": 64, "early_stopping": 0}})
    report = model.fit(farms.drop(columns=LABELS), farms["wet"]).report_
    train = report["experiment"]["train"]
    assert (len(report["epochs"]), train["batch_size"], train["early_stopping"]) == (2, 64, 0)
    with pytest.raises(fet.InputError, match="must be a dictionary"):
        classifier(settings="train.epochs=3").fit(farms.drop(columns=LABELS), farms["wet"])


def test_folders_and_runs_that_are_none_are_named(tables: Tables, classifier: Make, tmp_path: Path) -> None:
    farms = tables[0]
    (tmp_path / "file").write_text("")
    with pytest.raises(fet.InputError, match="cannot be the folder of a run"):
        classifier(folder=tmp_path / "file").fit(farms.drop(columns=LABELS), farms["wet"])
    with pytest.raises(fet.InputError, match="a fitted estimator"):
        fet.explain(classifier())


def test_links_without_a_pair_are_an_empty_frame_and_rows_are_integers(tables: Tables) -> None:
    farms, stations = tables
    ours, theirs = fet.Table(farms, KEYS), fet.Table(stations, KEYS)
    pairs = fet.link(ours, theirs, set={"neighbours": 1}).to_pandas()
    assert pairs["primary_row"].dtype == pairs["secondary_row"].dtype == np.int64
    assert isinstance(fet.link(ours, theirs, set={"neighbours": 1})["rank"][0], int)
    none = fet.link(ours, theirs, set={"neighbours": 1}, threshold=1.5)
    assert (len(none), none.columns) == (0, list(pairs.columns))
    assert len(none.to_pandas()) == 0


def test_a_release_in_a_temporary_folder_warns(tables: Tables) -> None:
    farms, stations = tables
    settings = {
        "linker": {"kind": "nearest", "neighbours": 1},
        "release": {"kind": "record-code", "columns": {"weather": {"rain": [-3, 3]}}},
        "train.randomness": "own",
    }
    party = fet.Table(stations, KEYS, name="weather", columns={"rain": "number:plain", "lon": "number:plain", "lat": "number:plain"})
    model = fet.TreesClassifier(KEYS, [party], settings=settings)
    with pytest.warns(fet.FetWarning, match="another release, whose ε adds"):
        model.fit(farms.drop(columns=LABELS), farms["wet"])


def _predicted(given: tuple[Any, pd.DataFrame]) -> str:
    model, rows = given
    try:
        model.predict(rows)
    except fet.FetError as error:
        return str(error)
    return "predicted"


def test_a_forked_process_is_refused(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X = farms.drop(columns=LABELS)
    model = classifier().fit(X, farms["wet"])
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert "forked" in pool.apply_async(_predicted, ((model, X[:2]),)).get(timeout=60)


def test_answers_and_estimators_name_themselves() -> None:
    assert "FeTPoolClassifier" in dir(fet)
