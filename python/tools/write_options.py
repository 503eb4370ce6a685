"""Writes `fet/options.py`, the typed classes of settings, from the schema of the installed program.

Run it after a change of settings: `python tools/write_options.py` in the folder `python`.
"""

import json
import keyword
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fet

_Schema = dict[str, Any]

_TABLES = ("train", "split", "scores", "policy")
_SLOTS = ("data", "linker", "method", "encoder", "aggregator", "privacy", "release", "labels", "attack")
_TYPES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool", "null": "None"}
_WIDTH = 120

_HEAD = '''"""Settings of experiments as typed classes, with the names, types and meanings that the program states.

Each class makes a table of settings: `fet.run(problem, set={"method": FetPoolMethod(width=16), "train": Train(epochs=5)})`.
A setting that is left out has its default. `tools/write_options.py` writes this file.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal


class Options(dict[str, Any]):
    """Table of settings."""

    def __init__(self, kind: str | None, given: Mapping[str, Any]) -> None:
        """Keep the settings that are given."""
        named = {} if kind is None else {"kind": kind}
        kept = {name: value for name, value in given.items() if name not in ("self", "__class__") and value is not None}
        # A word of Python has an underscore after it, as in `class_`.
        super().__init__({**named, **{name.rstrip("_"): value for name, value in kept.items()}})
'''


def kinds(slot: _Schema) -> Iterator[tuple[str, _Schema]]:
    """Return the settings of each kind, which the schema has as a chain of `if`, `then` and `else`."""
    link: Any = slot
    while isinstance(link, dict) and "if" in link:
        yield link["if"]["properties"]["kind"]["const"], link["then"]
        link = link["else"]


def camel(*names: str) -> str:
    """Make the name of a class."""
    return "".join(part.capitalize() for name in names for part in re.split("[-_]", name))


class Writer:
    """Text of the classes, nested tables first."""

    def __init__(self) -> None:
        """Begin without classes."""
        # Each class stands after those of its nested tables.
        self.classes: dict[str, str] = {}

    def type_of(self, name: str, parent: str, schema: _Schema) -> str:
        """Return the type of a setting; a nested table with settings has a class."""
        if "enum" in schema:
            return f"Literal[{', '.join(json.dumps(value) for value in schema['enum'])}]"
        if "const" in schema:
            return f"Literal[{json.dumps(schema['const'])}]"
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return " | ".join(dict.fromkeys(self.type_of(name, parent, one) for one in schema[word]))
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(_TYPES[one] for one in kind if one != "null")
        if kind == "array":
            items = schema.get("items")
            return f"Sequence[{self.type_of(name, parent, items) if isinstance(items, dict) else 'Any'}]"
        properties = schema.get("properties", {})
        if "if" in schema:
            self.slot(name, schema)
        elif set(properties) - {"kind"}:
            return self.nested(name, parent, schema)
        return _TYPES.get(str(kind), "Mapping[str, Any]" if kind == "object" or properties else "Any")

    def nested(self, name: str, parent: str, schema: _Schema) -> str:
        """Write the class of a nested table once, and return its name."""
        for own in (camel(name), camel(parent, name)):
            # Its defaults depend on the table that contains it.
            text = self.text(own, None, without_defaults(schema), f"Table `{name}`.")
            if self.classes.setdefault(own, text) == text:
                return own
        raise ValueError(f"two tables {name} of {parent} differ")

    def slot(self, name: str, schema: _Schema) -> None:
        """Write a class for each kind of a slot."""
        kind_of = schema["properties"]["kind"]
        summaries = dict(zip(kind_of["enum"], kind_of["x-taplo"]["docs"]["enumValues"]))
        for kind, own in kinds(schema):
            # `fet.linker_settings` and its like make the tables of a class in Python.
            if kind != "python":
                cls = camel(kind, name)
                self.classes[cls] = self.text(cls, kind, own, summaries[kind])

    def text(self, cls: str, kind: str | None, schema: _Schema, summary: str) -> str:
        """Write a class."""
        properties = {argument(name): one for name, one in schema.get("properties", {}).items() if name != "kind" or kind is None}
        lines = [f"class {cls}(Options):", f'    """{first(summary)}']
        if properties:
            lines += ["", "    Args:"]
        for name, one in properties.items():
            meaning = one.get("description", "").replace("\\", "\\\\") + default_of(one)
            lines += textwrap.wrap(f"{name}: {meaning}", _WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 12)
        lines += ['    """', ""]
        if properties:
            lines += ["    def __init__(", "        self,", "        *,"]
            lines += [f"        {name}: {self.type_of(name, cls, one)} | None = None," for name, one in properties.items()]
            lines += ["    ) -> None:"]
        else:
            lines += ["    def __init__(self) -> None:"]
        lines += ['        """Keep the settings that are given."""', f"        super().__init__({json.dumps(kind) if kind else None}, locals())"]
        return "\n".join(lines) + "\n"


def first(summary: str) -> str:
    """Return a summary as one line that ends with a stop."""
    sentence = re.split(r"(?<=[.:;]) ", summary.strip())[0].rstrip(".:;")
    return sentence[:1].upper() + sentence[1:] + "."


def argument(setting: str) -> str:
    """Return the name of a setting as an argument."""
    return setting + "_" if keyword.iskeyword(setting) else setting


def default_of(schema: _Schema) -> str:
    """Return a sentence with the default of a setting; a table states its own."""
    value = schema.get("default")
    return "" if value is None or isinstance(value, dict) else f" Default: {json.dumps(value)}."


def without_defaults(schema: _Schema) -> _Schema:
    """Return a schema without the defaults of its settings."""
    properties = schema.get("properties", {})
    bare = {name: {word: one for word, one in own.items() if word != "default"} for name, own in properties.items()}
    return {**schema, "properties": bare}


def text() -> str:
    """Write the whole module."""
    schema = fet.schema()["properties"]
    writer = Writer()
    for name in _TABLES:
        own = schema[name]
        writer.classes[camel(name)] = writer.text(camel(name), None, own, own["description"])
    for slot in _SLOTS:
        writer.slot(slot, schema[slot])
    return _HEAD + "".join("\n\n" + own for own in writer.classes.values())


if __name__ == "__main__":
    (Path(__file__).parents[1] / "fet" / "options.py").write_text(text(), encoding="utf-8")
