"""Estimators with the conventions of scikit-learn.

An estimator's `X` is the primary's frame with its key columns; the other parties' tables are a parameter. So
`cross_val_score`, `GridSearchCV` and `Pipeline` divide the primary's rows alone.
"""

import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from fet import _fet
from fet.errors import InputError
from fet.notes import logged, note, receiver, shown
from fet.runs import PROBABILITY, Run, Workplace, predict, warn_of_release, write_experiment
from fet.settings import sets
from fet.tables import ArrayFrame, Labels, Problem, Table, Task, write_table

_C = TypeVar("_C", bound="_Classifier")
_R = TypeVar("_R", bound="_Regressor")

# A run also measures itself on rows that it neither learns from nor selects by.
_TEST_SHARE = 0.01
_FEWEST_TEST_ROWS = 2
_FEWEST_ROWS = 2
_SEEDS = 2**31
# Texts that mean a missing cell in a table.
_MISSING = ("NA", "N/A", "NaN", "null", "None", "?")


class _Estimator(BaseEstimator):  # type: ignore[misc]
    """Estimator that trains one run for each `fit`."""

    _method: ClassVar[str] = ""

    def __init__(
        self,
        keys: Sequence[str] = (),
        secondaries: Sequence[Table] = (),
        *,
        epochs: int | None = None,
        neighbours: int | None = None,
        validation_fraction: float = 0.1,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "flex",
        settings: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        progress: bool = False,
    ) -> None:
        """Store the parameters.

        `keys` are the key columns of `X`. `secondaries` are the other parties' tables, each with as many keys.
        `neighbours` is the number of records that each of them links to a row. `settings` changes any setting by its
        path, as `{"train.batch_size": 64}`. With `folder`, the run stays there after the estimator is gone.
        `progress` shows a bar of the package tqdm.
        """
        self.keys = keys
        self.secondaries = secondaries
        self.epochs = epochs
        self.neighbours = neighbours
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.settings = settings
        self.folder = folder
        self.verbose = verbose
        self.progress = progress

    def __sklearn_tags__(self) -> Tags:
        """Describe the input: tables with missing cells and texts."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def _frame(self, X: Any, *, reset: bool) -> Any:
        """Check the columns of `X`, and make a frame of an array, with the columns `x0`, `x1`, ..."""
        keys = Table(None, self.keys).keys
        frame = X
        if hasattr(X, "__arrow_c_stream__"):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif hasattr(X, "tocsr"):
            raise InputError("Sparse data is not supported: `X` must be a frame or a dense array")
        else:
            array = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            frame = ArrayFrame(array)
            absent = [key for key in keys if key not in frame.columns]
            if absent:
                raise InputError(
                    f"`X` must be a frame with the key column `{absent[0]}`; the columns of an array are x0, x1, ... "
                    'In a pipeline, `set_output(transform="pandas")` makes a step return a frame.'
                )
        count = getattr(self, "n_features_in_", None)
        if count is not None and count == len(keys):
            raise InputError(f"`X` has {count} feature(s), and each is a key column; add a column that is no key")
        return frame

    def _labels(self, X: object, y: ArrayLike | None) -> NDArray[Any]:
        """Check the labels of the rows `X`."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        labels = check_array(y, ensure_2d=False, ensure_min_samples=0, dtype=None, input_name="y", estimator=self)
        labels = column_or_1d(labels, warn=True)
        if not len(labels):
            raise InputError("`y` must have at least one label")
        checked: NDArray[Any] = labels
        return checked

    def _fit(self, X: object, y: object, label: Labels, task: Task) -> None:
        """Write the experiment and train it."""
        X = self._frame(X, reset=True)
        if len(label) < _FEWEST_ROWS:
            raise InputError(f"`X` must have at least {_FEWEST_ROWS} rows: it has 1 sample")
        workplace = Workplace(self.folder)
        folder = workplace.path
        name = str(getattr(y, "name", None) or "label")
        taken = {str(column) for column in getattr(X, "columns", ())}
        # A feature may have the name of the label.
        while name in taken:
            name += "_"
        primary = Table(X, self.keys, name="primary")
        problem = Problem(primary, self.secondaries, name, task=task)
        path = write_table(X, folder, "primary", keys=[(key, key) for key in primary.keys], label=(name, label))
        # Its warnings are about the split, which is another one here.
        settings = problem.settings_of(path, folder, self._method, logged)
        if isinstance(label, list):
            kinds = settings["data"]["primary"].setdefault("columns", {})
            kinds[name] = "category"
        test = max(_TEST_SHARE, _FEWEST_TEST_ROWS / len(label))
        kind = "random" if task == "regression" else "stratified"
        settings["split"] = {"kind": kind, "validation": self.validation_fraction, "test": test}
        seed = self.random_state
        is_number = isinstance(seed, (int, np.integer))
        settings["seed"] = seed if is_number else int(check_random_state(seed).randint(_SEEDS))
        settings["device"] = self.device
        if self.epochs is not None:
            settings["train"]["epochs"] = self.epochs
        if self.neighbours is not None:
            linker = settings["linker"]
            linker.get("inner", linker)["neighbours"] = self.neighbours
        file = write_experiment(settings, folder)
        place = (folder, workplace.is_temporary)
        with receiver(self.verbose, self.progress) as notes:
            _fet.run(file, folder, sets(self.settings), place, notes)
        self._workplace = workplace
        self.folder_ = folder
        self.report_ = Run(folder).report
        warn_of_release(self.report_, workplace)

    def _predict(self, X: object) -> _fet.Frame:
        check_is_fitted(self, "report_")
        return predict(self.folder_, self._frame(X, reset=False), shown if self.verbose else note)

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters and the content of the run's folder."""
        state = dict(super().__getstate__())
        if state.pop("_workplace", None) is not None:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                for path in sorted(self.folder_.rglob("*")):
                    archive.write(path, path.relative_to(self.folder_))
            state["_packed"] = packed.getvalue()
            del state["folder_"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the estimator, with its run in a temporary folder."""
        packed = state.pop("_packed", None)
        super().__setstate__(state)
        if packed is not None:
            self._workplace = Workplace(None)
            self.folder_ = self._workplace.path
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                archive.extractall(self.folder_)


class _Classifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """Classifier for two or more classes."""

    def fit(self: _C, X: object, y: ArrayLike) -> _C:
        """Train on the primary's rows `X`, a frame with the key columns, and their classes `y`."""
        values = self._labels(X, y)
        check_classification_targets(values)
        classes, codes = np.unique(values, return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"`y` has only one class, {classes[0]!r}; a classifier needs at least two")
        if classes.dtype.kind in "iuf":
            label: Labels = values.astype(np.float64)
        else:
            names = [str(name) for name in classes]
            missing = [name for name in names if name.strip() in ("", *_MISSING)]
            if missing:
                raise InputError(f"`y`: the class {missing[0]!r} means a missing label; give the class another name")
            label = [names[code] for code in codes]
        self._fit(X, y, label, "binary" if len(classes) == 2 else "multiclass")
        self.classes_ = classes
        return self

    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of `classes_`."""
        found = self._predict(X)
        names = [name.removeprefix(PROBABILITY) for name in found.columns if name.startswith(PROBABILITY)]
        numeric = self.classes_.dtype.kind in "iuf"
        of_class = {float(name) if numeric else name: found[PROBABILITY + name] for name in names}
        missing = [0.0] * len(found)
        columns = [of_class.get(c.item() if numeric else str(c).strip(), missing) for c in self.classes_]
        return np.asarray(columns, dtype=np.float64).T

    def predict(self, X: object) -> NDArray[Any]:
        """Return the most probable class of each row."""
        likeliest = np.argmax(self.predict_proba(X), axis=1)
        classes: NDArray[Any] = self.classes_[likeliest]
        return classes


class _Regressor(RegressorMixin, _Estimator):  # type: ignore[misc]
    """Regressor for one number."""

    def fit(self: _R, X: object, y: ArrayLike) -> _R:
        """Train on the primary's rows `X`, a frame with the key columns, and their numbers `y`."""
        self._fit(X, y, self._labels(X, y).astype(np.float64), "regression")
        return self

    def predict(self, X: object) -> NDArray[np.float64]:
        """Return the predicted number of each row."""
        return np.asarray(self._predict(X)["prediction"], dtype=np.float64)

    def predict_interval(self, X: object) -> NDArray[np.float64]:
        """Return the lower and upper bound of each row, which hold with the coverage `scores.coverage`."""
        found = self._predict(X)
        if "lower" not in found.columns:
            raise InputError("the run has no bounds: the validation rows are too few for the coverage")
        return np.asarray([found["lower"], found["upper"]], dtype=np.float64).T


class FeTClassifier(_Classifier):
    """The Federated Transformer as a classifier."""

    _method = "fet"


class FeTRegressor(_Regressor):
    """The Federated Transformer as a regressor."""

    _method = "fet"


class FeTPoolClassifier(_Classifier):
    """One pooled vector of each party for a row, as a classifier."""

    _method = "fet-pool"


class FeTPoolRegressor(_Regressor):
    """One pooled vector of each party for a row, as a regressor."""

    _method = "fet-pool"


class FeTPoolWithTreesClassifier(_Classifier):
    """`FeTPoolClassifier` averaged with boosted trees on the primary's own columns: the choice of `fet init`."""

    _method = "with-trees"


class FeTPoolWithTreesRegressor(_Regressor):
    """`FeTPoolRegressor` averaged with boosted trees on the primary's own columns: the choice of `fet init`."""

    _method = "with-trees"


class FeTTreesClassifier(_Classifier):
    """Boosted trees of all parties as a classifier."""

    _method = "fet-trees"


class FeTTreesRegressor(_Regressor):
    """Boosted trees of all parties as a regressor."""

    _method = "fet-trees"


class TopOneClassifier(_Classifier):
    """The nearest record of each party, joined (Top1Sim), as a classifier."""

    _method = "top1sim"


class TopOneRegressor(_Regressor):
    """The nearest record of each party, joined (Top1Sim), as a regressor."""

    _method = "top1sim"


class FedSimClassifier(_Classifier):
    """Pairs of records weighed by similarity (FedSim) as a classifier."""

    _method = "fedsim"


class FedSimRegressor(_Regressor):
    """Pairs of records weighed by similarity (FedSim) as a regressor."""

    _method = "fedsim"


class SoloClassifier(_Classifier):
    """A network on the primary's own columns as a classifier."""

    _method = "solo"


class SoloRegressor(_Regressor):
    """A network on the primary's own columns as a regressor."""

    _method = "solo"


class TreesClassifier(_Classifier):
    """Boosted trees on the primary's own columns as a classifier."""

    _method = "gbdt-solo"


class TreesRegressor(_Regressor):
    """Boosted trees on the primary's own columns as a regressor."""

    _method = "gbdt-solo"
