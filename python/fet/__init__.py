"""Federated Transformer: vertical federated learning over fuzzily linked tables.

The estimators, such as `fet.FeTClassifier`, need scikit-learn; everything else needs no other package.
"""

from typing import TYPE_CHECKING, Any

from fet import _fet, loggers, options, psi, testing
from fet._fet import Frame
from fet.commands import Study, account, attack, audit, explain, link, schema, study, worth
from fet.errors import FetError, FetWarning, InputError
from fet.figures import Figure, plot_curve, plot_reliance
from fet.plugins import (
    Measure,
    aggregator,
    aggregator_settings,
    attack_settings,
    encoder,
    encoder_settings,
    linker,
    linker_settings,
    method,
    method_settings,
)
from fet.runs import Run, run
from fet.tables import Problem, Table

if TYPE_CHECKING:
    from fet.estimators import (
        FedSimClassifier,
        FedSimRegressor,
        FeTClassifier,
        FeTPoolClassifier,
        FeTPoolRegressor,
        FeTPoolWithTreesClassifier,
        FeTPoolWithTreesRegressor,
        FeTRegressor,
        FeTTreesClassifier,
        FeTTreesRegressor,
        SoloClassifier,
        SoloRegressor,
        TopOneClassifier,
        TopOneRegressor,
        TreesClassifier,
        TreesRegressor,
    )

__version__ = _fet.version()

_ESTIMATORS = [
    "FeTClassifier",
    "FeTRegressor",
    "FeTPoolClassifier",
    "FeTPoolRegressor",
    "FeTPoolWithTreesClassifier",
    "FeTPoolWithTreesRegressor",
    "FeTTreesClassifier",
    "FeTTreesRegressor",
    "TopOneClassifier",
    "TopOneRegressor",
    "FedSimClassifier",
    "FedSimRegressor",
    "SoloClassifier",
    "SoloRegressor",
    "TreesClassifier",
    "TreesRegressor",
]

__all__ = [
    "FetError",
    "FetWarning",
    "Figure",
    "Frame",
    "InputError",
    "Measure",
    "Problem",
    "Run",
    "Study",
    "Table",
    "account",
    "aggregator",
    "aggregator_settings",
    "attack",
    "attack_settings",
    "audit",
    "encoder",
    "encoder_settings",
    "explain",
    "link",
    "linker",
    "linker_settings",
    "loggers",
    "method",
    "method_settings",
    "options",
    "plot_curve",
    "plot_reliance",
    "psi",
    "run",
    "schema",
    "study",
    "testing",
    "worth",
    *_ESTIMATORS,
]


def __dir__() -> list[str]:
    """Name the estimators, too, before their first use."""
    return sorted({*globals(), *_ESTIMATORS})


def __getattr__(name: str) -> Any:
    """Import the estimators, and scikit-learn with them, at their first use."""
    if name in _ESTIMATORS:
        try:
            from fet import estimators
        except ImportError as error:
            raise ImportError(f"fet.{name} needs scikit-learn ({error})") from error
        return getattr(estimators, name)
    raise AttributeError(f"module 'fet' has no attribute '{name}'")
