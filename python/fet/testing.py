"""Contract tests of plug-ins."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fet import _fet
from fet.commands import experiment_file
from fet.notes import note
from fet.plugins import aggregator_settings, attack_settings, encoder_settings, linker_settings, method_settings
from fet.runs import Experiment

# A small experiment on embedded data, with two parties and a classification.
_DIGITS = {
    "name": "digits",
    "data": {"kind": "split", "parties": 2, "key_noise": 0.05, "partition_seed": 0, "source": {"kind": "digits"}},
    "linker": {"kind": "nearest", "neighbours": 3},
    "method": {"kind": "fet-pool", "hidden": [16]},
    "encoder": {"kind": "mlp"},
    "train": {"epochs": 2},
}


def check_linker(cls: type, neighbours: int = 5, **options: Any) -> None:
    """Test the laws of linkers, the same as for the linkers of the program. The linker must accept 1, 2 and 4 key columns.

    Raises `AssertionError` with the broken law.
    """
    broken = _fet.check_linker(json.dumps(linker_settings(cls, neighbours, **options)), note)
    if broken is not None:
        raise AssertionError(broken)


def check_encoder(cls: type, **options: Any) -> None:
    """Test the laws of encoders, the same as for the encoders of the program.

    Raises `AssertionError` with the broken law.
    """
    broken = _fet.check_encoder(json.dumps(encoder_settings(cls, **options)), note)
    if broken is not None:
        raise AssertionError(broken)


def check_method(cls: type, inner: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Test the laws of methods, the same as for the methods of the program, except that it learns.

    Raises `AssertionError` with the broken law.
    """
    broken = _fet.check_method(json.dumps(method_settings(cls, inner, **options)), note)
    if broken is not None:
        raise AssertionError(broken)


def check_aggregator(cls: type, secure: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Test the laws of aggregators, the same as for the aggregators of the program.

    Raises `AssertionError` with the broken law.
    """
    broken = _fet.check_aggregator(json.dumps(aggregator_settings(cls, secure, **options)), note)
    if broken is not None:
        raise AssertionError(broken)


def check_attack(
    cls: type, experiment: Experiment | None = None, party: int = 1, *, is_passive: bool = True, **options: Any
) -> None:
    """Test the laws of attacks, the same as for the attacks of the program.

    `experiment` has no privacy mechanism; the default is a classification with one secondary. `is_passive` is false for an
    attack that changes messages. Raises `AssertionError` with the broken law.
    """
    settings = json.dumps(attack_settings(cls, party, **options))
    with tempfile.TemporaryDirectory(prefix="fet-") as scratch:
        file = experiment_file(_DIGITS if experiment is None else experiment, Path(scratch))
        broken = _fet.check_attack(settings, file, is_passive, note)
    if broken is not None:
        raise AssertionError(broken)
