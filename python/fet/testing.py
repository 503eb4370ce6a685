"""Contract tests of plug-ins."""

import json
from collections.abc import Mapping
from typing import Any

from fet import _fet
from fet.notes import note
from fet.plugins import aggregator_settings, encoder_settings, linker_settings


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


def check_aggregator(cls: type, secure: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Test the laws of aggregators, the same as for the aggregators of the program.

    Raises `AssertionError` with the broken law.
    """
    broken = _fet.check_aggregator(json.dumps(aggregator_settings(cls, secure, **options)), note)
    if broken is not None:
        raise AssertionError(broken)
