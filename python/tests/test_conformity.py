"""Checks of scikit-learn's conventions by its own test suite."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import fet

# The checks pass arrays. The first column, `x0`, is the key, also in the other party's table.
_RANDOM = np.random.default_rng(0)
PARTY = fet.Table(pd.DataFrame({"x0": _RANDOM.normal(size=40), "level": _RANDOM.normal(size=40)}), "x0", name="other")
METHODS = ["FeT", "FeTPool", "FeTPoolWithTrees", "FeTTrees", "TopOne", "FedSim", "Solo", "Trees"]

_UNNAMED = "the check passes a frame without the name of the key column"
_MISSING_KEYS = "the check passes a key column with missing cells"
EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": _UNNAMED,
    "check_regressor_data_not_an_array": _UNNAMED,
    "check_estimators_pickle": _MISSING_KEYS,
}
# These checks demand an accuracy or an R2, so they need more epochs; for the other estimators that takes minutes.
_SCORED = ("check_classifiers_train", "check_regressors_train")
_LONGER = ("FeTPoolClassifier", "FeTPoolRegressor")


def _checks() -> list[Any]:
    found = []
    for name in [f"{method}{kind}" for method in METHODS for kind in ("Classifier", "Regressor")]:
        model = getattr(fet, name)(["x0"], [PARTY], epochs=1, settings={"train.early_stopping": 0})
        with warnings.catch_warnings():
            # The generator warns about checks that it skips.
            warnings.simplefilter("ignore")
            marks = [] if name in _LONGER else [pytest.mark.slow]
            for estimator, check in estimator_checks_generator(model, legacy=True):
                title = getattr(check, "func", check).__name__
                found.append(pytest.param(estimator, check, title, id=f"{name}-{title}", marks=marks))
    return found


@pytest.mark.filterwarnings("ignore::fet.FetWarning")
@pytest.mark.parametrize(("estimator", "check", "title"), _checks())
def test_conforms(estimator: Any, check: Any, title: str) -> None:
    if title.startswith(_SCORED):
        if not type(estimator).__name__.startswith(_LONGER):
            pytest.skip("one epoch is too short for the accuracy of this check")
        estimator.set_params(epochs=30)
    if title in EXPECTED_FAILURES:
        with pytest.raises(fet.InputError, match="x0"):
            check(estimator)
    else:
        check(estimator)
