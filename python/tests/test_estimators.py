"""Tests of the estimators with scikit-learn's own tools."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import fet
from conftest import KEYS

Tables = tuple[pd.DataFrame, pd.DataFrame]
Make = Callable[..., Any]

METHODS = ["FeT", "FeTPool", "FeTPoolWithTrees", "FeTTrees", "TopOne", "FedSim", "Solo", "Trees"]
LABELS = ["amount", "wet"]


def test_a_script_trains_and_predicts(tables: Tables) -> None:
    farms, stations = tables
    model = fet.FeTPoolRegressor(KEYS, [fet.Table(stations, KEYS)], epochs=15)
    X, y = farms.drop(columns=LABELS), farms["amount"]
    model.fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.3
    low, high = model.predict_interval(X[300:]).T
    assert (low < high).all()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_a_classifier_and_a_regressor(tables: Tables, method: str) -> None:
    farms, stations = tables
    X, parties = farms.drop(columns=LABELS), [fet.Table(stations, KEYS)]
    fast = {"epochs": 1, "settings": {"train.early_stopping": 0}}
    classifier = getattr(fet, f"{method}Classifier")(KEYS, parties, **fast).fit(X, farms["wet"])
    assert list(classifier.classes_) == ["no", "yes"]
    assert classifier.predict_proba(X[:5]).sum(axis=1) == pytest.approx(1)
    assert set(classifier.predict(X[:5])) <= {"no", "yes"}
    regressor = getattr(fet, f"{method}Regressor")(KEYS, parties, **fast).fit(X, farms["amount"])
    assert regressor.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize(
    "labels", [[False, True], [0, 1], [1, 2], [1.0, 2.0], ["01", "1"], [0, 1, 2], [3, 5, 9], ["a", "b", "c"]]
)
def test_classes_keep_their_values(tables: Tables, classifier: Make, labels: list[Any]) -> None:
    farms = tables[0]
    bins = np.digitize(farms["amount"], [0] if len(labels) == 2 else [-1, 1])
    y = np.asarray(labels)[bins]
    model = classifier().fit(farms.drop(columns=LABELS), y)
    assert list(model.classes_) == labels
    probabilities = model.predict_proba(farms.drop(columns=LABELS)[:20])
    assert probabilities.sum(axis=1) == pytest.approx(1)
    assert probabilities.min() > 0
    assert model.predict(farms[:3].drop(columns=LABELS)).dtype == y.dtype


def test_cross_validation_and_search_divide_the_rows(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X, y = farms.drop(columns=LABELS), farms["wet"]
    assert cross_val_score(classifier(), X, y, cv=3).shape == (3,)
    grid = {"epochs": [1], "neighbours": np.array([1, 2]), "settings": [None, {"method.dropout": 0.0}]}
    search = GridSearchCV(classifier(), grid, cv=2, error_score="raise").fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(search.predict(X[:7])) == 7


def test_a_pipeline_and_a_clone_have_the_same_predictions(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X, y = farms.drop(columns=LABELS), farms["wet"]
    model = classifier()
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    pipeline = Pipeline([("same", FunctionTransformer()), ("fet", copy)]).fit(X, y)
    expected = model.fit(X, y).predict_proba(X)
    assert (pipeline.predict_proba(X) == expected).all()
    pipeline.set_params(fet__epochs=1).fit(X, y)
    assert len(pipeline["fet"].report_["epochs"]) == 1
    assert (clone(model).fit(pl.from_pandas(X), y).predict_proba(pl.from_pandas(X)) == expected).all()


def test_a_fitted_estimator_can_be_pickled(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X, y = farms.drop(columns=LABELS), farms["wet"]
    model = classifier().fit(X, y)
    expected = model.predict_proba(X)
    packed = pickle.dumps(model)
    folder = model.folder_
    del model
    assert not folder.exists()
    assert (pickle.loads(packed).predict_proba(X) == expected).all()


def test_refuses_frames_without_names(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    with pytest.raises(fet.InputError, match="set_output"):
        classifier().fit(farms.to_numpy(), farms["wet"])
    with pytest.raises(fet.InputError, match="at least one label"):
        classifier().fit(farms.drop(columns=LABELS), [])
    with pytest.raises(fet.InputError, match="another party"):
        fet.SoloClassifier(KEYS).fit(farms.drop(columns=LABELS), farms["wet"])
    with pytest.raises(fet.InputError, match="labels do not fit"):
        classifier().fit(farms.drop(columns=LABELS), farms["wet"][:9])


def test_a_feature_may_have_the_name_of_the_label(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X = farms.drop(columns=LABELS).rename(columns={"own": "wet"})
    model = classifier().fit(X, farms["wet"])
    assert set(model.predict(X[:9])) <= {"yes", "no"}


def test_an_array_has_the_predictions_of_its_frame(tables: Tables) -> None:
    farms, stations = tables
    party = fet.Table(stations.rename(columns={"lon": "x0", "lat": "x1"}), ["x0", "x1"])
    array, y = farms[["lon", "lat", "own"]].to_numpy(), farms["amount"]
    frame = pd.DataFrame(array, columns=["x0", "x1", "x2"])
    model = fet.FeTPoolRegressor(["x0", "x1"], [party], epochs=1)
    found = model.fit(array, y).predict(array)
    assert model.n_features_in_ == 3
    assert (found == model.fit(frame, y).predict(frame)).all()
    assert list(model.feature_names_in_) == ["x0", "x1", "x2"]
    with pytest.raises(ValueError, match="2 features|feature names"):
        model.predict(frame[["x0", "x1"]])


def test_refuses_infinite_numbers_and_classes_of_one_kind(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X, y = farms.drop(columns=LABELS), farms["wet"]
    with pytest.raises(fet.InputError, match="only one class"):
        classifier().fit(X, ["yes"] * len(X))
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(X, [np.nan] * len(X))
    with pytest.raises(fet.InputError, match="finite"):
        classifier().fit(X.assign(own=np.inf), y)
    X.loc[:9, "own"] = np.nan
    assert len(classifier().fit(X, y).predict(X)) == len(X)


def test_a_random_state_of_numpy_gives_the_seed(tables: Tables, classifier: Make) -> None:
    farms = tables[0]
    X, y = farms.drop(columns=LABELS), farms["wet"]
    first, second = (classifier(random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2))
    assert first.report_["seed"] == second.report_["seed"] > 0
    other = classifier(random_state=np.random.RandomState(4)).fit(X, y)
    assert other.report_["seed"] != first.report_["seed"]
