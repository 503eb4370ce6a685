"""Settings of experiments as dictionaries, keyed by the names of tables or by dotted paths."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fet import _fet
from fet.errors import InputError

Settings = dict[str, Any]


def _plain(value: Any) -> Any:
    """Make a value of plain Python types; settings of `None` are left out."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    # Numbers of NumPy, as in the grid of a search.
    return value.item() if hasattr(value, "item") else value


def toml(value: Any) -> str:
    """Write settings, or the value of one setting, as TOML."""
    return _fet.to_toml(json.dumps(_plain(value), allow_nan=False))


def _inline(value: Any) -> str:
    """Write a value as TOML in one line."""
    if isinstance(value, dict):
        fields = [f"{json.dumps(name)} = {_inline(item)}" for name, item in value.items()]
        return "{ " + ", ".join(fields) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return toml(value)


def sets(settings: Mapping[str, Any] | None) -> list[str]:
    """Make `path=value` of each setting, as `--set` takes it.

    A table with `kind`, as in `{"linker": {"kind": "nearest"}}`, replaces the component. Any other table, as in
    `{"train": {"epochs": 5}}`, changes the settings that it names.
    """
    if not isinstance(settings, Mapping | None):
        raise InputError(f"settings must be a dictionary of paths and values, as {{'train.epochs': 5}}; not {settings!r}")
    given: Settings = {}
    for path, value in _plain(settings or {}).items():
        if isinstance(value, dict) and "kind" not in value and "." not in path:
            given.update({f"{path}.{name}": item for name, item in value.items()})
        else:
            given[path] = value
    return [f"{path}={_inline(value)}" for path, value in given.items()]
