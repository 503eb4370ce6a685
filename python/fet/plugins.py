"""Plug-ins in Python: classes that the program calls in place of its own components.

The identity of a plug-in is its import path and the hash of its source file; both are settings of the experiment.
Plug-ins need NumPy.
"""

import hashlib
import importlib
import importlib.util
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fet.errors import InputError
from fet.settings import Settings

_Class = TypeVar("_Class", bound=type)
# Cells of keys and the number of columns, as the native module gives them: bytes of 64-bit floats, or texts.
_Cells = tuple[bytes | list[str], int]
# Parameters of a module: name, shape and values.
_Described = list[tuple[str, tuple[int, ...], bytes]]

_TAKES = ("numbers", "text", "either")
_ATTACKERS = ("primary", "secondary")
_TARGETS = ("labels", "features", "membership", "links", "predictions")


class Invalid(InputError):
    """A plug-in or its answer breaks a rule. The text contains no keys, so all parties may read it."""


class Refused(Invalid):
    """A setting of a plug-in is invalid. The arguments are the setting, the rule and the value."""

    def __str__(self) -> str:
        """Write the message as the program does."""
        setting, rule, value = self.args
        return f"`{setting}` {rule}; it is {value}"


class Stopped(Exception):
    """The program answers no more questions of an attack: a run failed, or the user stopped it."""


class Measure(NamedTuple):
    """Measure of an attack's success.

    `value` is the attacker's result, `baseline` its result without the run, and `perfect` a complete success.
    """

    name: str
    value: float
    baseline: float
    perfect: float = 1.0


class _Registered:
    """A class with the hash of its source at its import."""

    def __init__(self, plugin: type, slot: str, source: str) -> None:
        self.plugin = plugin
        self.slot = slot
        self.source = source


_registered: dict[str, _Registered] = {}


def linker(cls: _Class) -> _Class:
    """Register a class as a linker.

    The class has a method `link(self, queries, records, neighbours, seed)`. It gets the keys as NumPy arrays, one row for
    each record, and returns an array of the indices of the nearest records, [queries, neighbours], and an array of their
    similarities, highest first. It must link equal keys equally. These attributes of the class state its properties:

    - `takes`: "numbers" (the default), "text" or "either", the kind of keys;
    - `similarities`: false if `link` returns `None` in place of similarities;
    - `independent`: true if the links of a query depend on no other query;
    - `floor`: similarity at or below which records do not match. A class for texts with similarities needs it: a row whose
      keys are all empty gets at most this similarity, and so no link.
    """
    return _register(cls, "linker")


def _register(cls: _Class, slot: str) -> _Class:
    if not isinstance(cls, type):
        raise InputError(f"{cls!r}: `@fet.{slot}` must be above a class")
    if "." in cls.__qualname__:
        raise InputError(f"{cls.__qualname__}: a plug-in must be a class of a module, outside functions and classes")
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    _registered[_path(cls)] = _Registered(cls, slot, _hash(file))
    return cls


def _hash(file: str | None) -> str:
    """Return the SHA-256 of a file, or nothing for code without one."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and os.path.isfile(file) else ""


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def linker_settings(cls: type, neighbours: int = 20, *, pad: bool = False, **options: Any) -> Settings:
    """Return the table `linker` of an experiment that links with a class.

    `neighbours` is the number of records for each row. With `pad`, a smaller table repeats its records. The other
    arguments are those of the class.
    """
    shape = {"neighbours": neighbours, "pad": pad}
    return {**_identity(cls, "linker"), **shape, **({"options": options} if options else {})}


def _identity(cls: type, slot: str) -> Settings:
    if not isinstance(cls, type):
        raise InputError(f"{cls!r}: must be a class; its arguments follow it, as in `fet.{slot}_settings(Class, weight=2.0)`")
    path = _path(cls)
    found = _registered.get(path)
    if found is None or found.slot != slot:
        raise InputError(f"{path}: put `@fet.{slot}` above the class")
    if not found.source or cls.__module__ == "__main__":
        problem = "other processes cannot import it; move the class from the script or notebook to a module"
        raise InputError(f"{path}: {problem}")
    if found.plugin is not cls:
        raise InputError(f"{path}: its module was imported again; take the class from the module again")
    if found.source != _hash(getattr(sys.modules.get(cls.__module__), "__file__", None)):
        problem = f"its file changed after the import; call `importlib.reload` of the module {cls.__module__}, or start Python again"
        raise InputError(f"{path}: {problem}")
    return {"kind": "python", "plugin": path, "source": found.source}


def encoder(cls: _Class) -> _Class:
    """Register a class as an encoder: a `torch.nn.Module`, or a class with its own backward pass.

    A module of PyTorch has `__init__(self, keys, features, hidden)`, with the numbers of key columns and feature columns
    and the width of the representation. Its `forward(self, keys, features)` gets tensors
    [rows, neighbours, columns] and returns [rows, neighbours, hidden].

    Another class works with NumPy. `__init__` has a further argument `seed`. `parameters()` returns a dictionary of the
    arrays that are trained, of 32-bit floats, and not of copies: the program writes into them. `backward(gradient)` returns
    a dictionary with the gradient of each parameter for the last `forward`.
    """
    return _register(cls, "encoder")


def encoder_settings(cls: type, **options: Any) -> Settings:
    """Return the table `encoder` of an experiment that encodes with a class. The options are arguments of the class."""
    return {**_identity(cls, "encoder"), **({"options": options} if options else {})}


def method(cls: _Class) -> _Class:
    """Register a class as the primary's model of a method: a `torch.nn.Module`, or a class with its own backward pass.

    A module of PyTorch has `__init__(self, keys, features, memory, outputs)`: the numbers of key columns and feature
    columns, the positions and the width of the memory, as a tuple, and the number of outputs. Its
    `forward(self, keys, features, memory)` gets tensors [rows, columns], and the memory [rows, positions, width] of the
    other parties. It returns [rows, outputs]: a score for each class, or one for two classes or a number, to which the
    program applies a sigmoid. A method without other parties has a memory of 0 positions and the width 0.

    Another class works with NumPy. `__init__` has a further argument `seed`. `parameters()` returns a dictionary of the
    arrays that are trained, of 32-bit floats, and not of copies: the program writes into them. `backward(gradient)` returns
    a tuple: a dictionary with the gradient of each parameter for the last `forward`, and the gradient of the memory.
    """
    return _register(cls, "method")


def method_settings(cls: type, inner: Mapping[str, Any] | None = None, **options: Any) -> Settings:
    """Return the table `method` of an experiment with a class as the model at the primary.

    `inner` is the table of the method that the secondaries use, such as `{"kind": "fet-pool", "width": 16}`; its optimiser
    also trains the class. The default is `{"kind": "fet"}`. The other arguments are those of the class.
    """
    table = {} if inner is None else {"inner": dict(inner)}
    return {**_identity(cls, "method"), **table, **({"options": options} if options else {})}


def aggregator(cls: _Class) -> _Class:
    """Register a class as an aggregator: a `torch.nn.Module`, or a class with its own backward pass.

    `forward(self, parts, round)` gets a list with the representation [rows, positions, hidden] of each secondary that
    answered, and returns the memory [rows, positions, width], with the positions of the longest part. The memory must be
    linear in the parts. A module of PyTorch gets tensors, and has no parameters and no buffers. Another class gets NumPy
    arrays, and has `backward(self, gradient, round)`, which returns the gradient of each part. `round` has `parties`,
    `active`, `shapes` and `similarities`. These attributes of the class state its properties:

    - `sees`: "parts" (the default), or "sum" for a class that gets only the sum of the parts, by secure aggregation. Then
      `forward` gets one array, and `backward` returns the gradient of the sum;
    - `similarities`: true if it needs the similarities of the neighbours, which the secondaries then reveal;
    - `width(self, parties, hidden)`: width of the memory, if it differs from `hidden`.
    """
    return _register(cls, "aggregator")


def aggregator_settings(cls: type, secure: Mapping[str, Any] | None = None, **options: Any) -> Settings:
    """Return the table `aggregator` of an experiment that aggregates with a class.

    A class with `sees = "sum"` uses secure aggregation, and `secure` changes its settings, which are those of the aggregator
    `secure-average`. The other arguments are those of the class.
    """
    is_summed = secure is not None or getattr(cls, "sees", "parts") == "sum"
    table = {"secure": dict(secure or {})} if is_summed else {}
    return {**_identity(cls, "aggregator"), **table, **({"options": options} if options else {})}


def attack(cls: _Class) -> _Class:
    """Register a class as an attack: the decorator `fet.attack`."""
    return _register(cls, "attack")


def attack_settings(cls: type, party: int = 1, **options: Any) -> Settings:
    """Return the table `attack` of an experiment that a class attacks.

    `party` is the number of the attacking or attacked secondary, from 1. The other arguments are those of the class.
    """
    return {**_identity(cls, "attack"), "party": party, **({"options": options} if options else {})}


def environment() -> dict[str, str]:
    """Return the environment of a process that imports the same modules as this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(os.path.abspath(place) for place in sys.path)}


# The native module calls the functions below, in one thread.


def linker_about(plugin: str, source: str, options: Mapping[str, Any]) -> tuple[str, bool, bool, float | None]:
    """Return the properties of a linker: kind of keys, similarities, independence, floor."""
    made = _make("linker", plugin, source, options)
    takes = getattr(made, "takes", "numbers")
    if takes not in _TAKES:
        raise Refused("plugin", f"must have `takes` as one of {', '.join(_TAKES)}", f"{plugin} with {takes!r}")
    if not callable(getattr(made, "link", None)):
        raise Refused("plugin", "must have a method `link`", plugin)
    floor = _floor(made)
    if floor is None and takes != "numbers" and _has_similarities(made):
        rule = "must have `floor`, the similarity at or below which texts do not match"
        raise Refused("plugin", rule, f"{plugin} without it")
    if floor is not None and not math.isfinite(floor):
        raise Refused("plugin", "must have a finite number as `floor`", f"{plugin} with {floor}")
    return takes, _has_similarities(made), bool(getattr(made, "independent", False)), floor


def linker_link(
    plugin: str,
    source: str,
    options: Mapping[str, Any],
    queries: _Cells,
    records: _Cells,
    neighbours: int,
    seed: int,
) -> tuple[bytes, bytes | None]:
    """Link, check the links, and return them as bytes: 32-bit indices and similarities."""
    import numpy as np

    made: Any = _make("linker", plugin, source, options)
    keys, others = keys_of(queries), keys_of(records)
    shape = (len(keys), neighbours)

    def refuse(problem: str) -> Invalid:
        return Invalid(f"`linker.plugin`: {plugin} returned {problem}")

    def array(name: str, value: object, kinds: str, wanted: str) -> Any:
        found = np.asarray(value)
        if found.shape != shape:
            raise refuse(f"{name} of the shape {found.shape}; it must be {shape}, queries and neighbours")
        if found.dtype.kind not in kinds:
            raise refuse(f"{name} of the type {found.dtype}; they must be {wanted}")
        return found

    found = made.link(keys, others, neighbours, seed)
    if not isinstance(found, tuple) or len(found) != 2:
        raise refuse(f"a {type(found).__name__}; it must be the tuple (indices, similarities)")
    indices = array("indices", found[0], "iu", "integers")
    if indices.size and not (indices.min() >= 0 and indices.max() < len(others)):
        raise refuse(f"indices from {indices.min()} to {indices.max()}; they must be 0 to {len(others) - 1}")
    ordered = np.sort(indices, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        row = int((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).argmax())
        raise refuse(f"a record twice for query {row} (from 0); the records of a query must differ")
    whole = np.ascontiguousarray(indices, dtype=np.uint32).tobytes()
    if not _has_similarities(made):
        if found[1] is not None:
            raise refuse("similarities; they must be None for a class with `similarities = False`")
        return whole, None
    if found[1] is None:
        raise refuse("no similarities; give the class `similarities = False`, or return an array")
    similarities = array("similarities", found[1], "iuf", "numbers").astype(np.float32)
    if not np.isfinite(similarities).all():
        raise refuse("similarities that are not finite 32-bit numbers")
    floor = _floor(made)
    if keys.dtype == object and floor is not None:
        is_empty = np.array([all(not str(cell).strip() for cell in row) for row in keys], bool)
        similarities[is_empty] = np.minimum(similarities[is_empty], floor)
    if (similarities[:, 1:] > similarities[:, :-1]).any():
        row = int((similarities[:, 1:] > similarities[:, :-1]).any(axis=1).argmax())
        raise refuse(f"query {row} (from 0) out of order; the highest similarity must be first")
    return whole, np.ascontiguousarray(similarities).tobytes()


def encoder_new(
    plugin: str, source: str, options: Mapping[str, Any], sizes: tuple[int, int, int, int], seed: int
) -> tuple[object, _Described]:
    """Create the module of an encoder, and describe its parameters."""
    from fet.modules import create_encoder

    return _module("encoder", "encodes", plugin, source, lambda cls: create_encoder(plugin, cls, sizes, seed, dict(options)))


def method_about(plugin: str, source: str) -> None:
    """Check that a class is a method."""
    _find("method", plugin, source)


def method_new(
    plugin: str, source: str, options: Mapping[str, Any], sizes: tuple[int, int, tuple[int, int], int], seed: int
) -> tuple[object, _Described]:
    """Create the primary's model of a method, and describe its parameters."""
    from fet.modules import create_method

    return _module("method", "predicts", plugin, source, lambda cls: create_method(plugin, cls, sizes, seed, dict(options)))


def _module(slot: str, does: str, plugin: str, source: str, create: Callable[[type], Any]) -> tuple[object, _Described]:
    """Create the module of a class, and make every failure a refusal of the setting `plugin`."""
    found = _find(slot, plugin, source)
    try:
        made = create(found.plugin)
    except Refused:
        raise
    except Invalid as error:
        raise Refused("plugin", f"must name a class that works: {str(error).partition(': ')[2]}", repr(plugin)) from error
    except Exception as error:
        rule = f"must name a class that {does} rows ({type(error).__name__}: {error})"
        raise Refused("plugin", rule, repr(plugin)) from error
    return made, made.module.described()


def aggregator_new(plugin: str, source: str, options: Mapping[str, Any], sums: bool) -> tuple[object, bool]:
    """Create an aggregator and test its laws; return true with it if it needs similarities."""
    from fet.aggregation import create

    return create(plugin, _make("aggregator", plugin, source, options), sums)


def attack_about(plugin: str, source: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """Return the attacker and the target of an attack."""
    made = _make("attack", plugin, source, options)
    found = []
    for name, values in (("attacker", _ATTACKERS), ("target", _TARGETS)):
        value = getattr(made, name, None)
        if value not in values:
            raise Refused("plugin", f"must have `{name}` as one of {', '.join(values)}", f"{plugin} with {value!r}")
        found.append(str(value))
    if not callable(getattr(made, "attack", None)):
        raise Refused("plugin", "must have a method `attack`", repr(plugin))
    return found[0], found[1]


def attack_check(plugin: str, source: str, options: Mapping[str, Any], setting: tuple[Any, ...]) -> None:
    """Have an attack check the properties of an experiment."""
    from fet.attacks import Setting

    made: Any = _make("attack", plugin, source, options)
    if not hasattr(made, "check"):
        return
    try:
        made.check(Setting(*setting))
    except InputError as error:
        raise Refused("plugin", f"must fit the experiment ({error})", repr(plugin)) from error


def attack_run(
    plugin: str, source: str, options: Mapping[str, Any], bridge: object, setting: tuple[Any, ...]
) -> list[tuple[str, float, float, float]]:
    """Run an attack, and return its measures."""
    from fet.attacks import Setting, run

    return run(plugin, _make("attack", plugin, source, options), bridge, Setting(*setting))


def described(error: BaseException) -> str:
    """Describe an exception of a plug-in with the places of its own code."""
    return "Python code failed:\n" + "".join(traceback.format_exception(error)).rstrip()


def _has_similarities(made: object) -> bool:
    return bool(getattr(made, "similarities", True))


def _floor(made: object) -> float | None:
    floor = getattr(made, "floor", None)
    return None if floor is None else float(floor)


def keys_of(cells: _Cells) -> Any:
    """Make an array of keys, one row for each record."""
    import numpy as np

    values, columns = cells
    if isinstance(values, bytes):
        # The array may be written to: a copy of the program's keys.
        return np.frombuffer(bytearray(values), dtype=np.float64).reshape(-1, columns)
    texts = np.empty(len(values), dtype=object)
    texts[:] = values
    return texts.reshape(-1, columns)


def _make(slot: str, plugin: str, source: str, options: Mapping[str, Any]) -> object:
    """Import a class, compare the hash of its source, and create an object."""
    make: Callable[..., object] = _find(slot, plugin, source).plugin
    try:
        return make(**options)
    except Exception as error:
        problem = f"must be arguments that {plugin} accepts ({type(error).__name__}: {error})"
        raise Refused("options", problem, str(dict(options))) from error


def _find(slot: str, plugin: str, source: str) -> _Registered:
    """Return a class, which is imported only from a file with the hash."""
    module, _, name = plugin.partition(":")
    # A registered class needs no import, which could wait for a module that is being imported.
    if plugin not in _registered:
        try:
            if module not in sys.modules:
                place = importlib.util.find_spec(module)
                if place is not None:
                    _check_source(_hash(place.origin), plugin, source)
            importlib.import_module(module)
        except Refused:
            raise
        except Exception as error:
            rule = f"must name a class in a module that can be imported ({type(error).__name__}: {error})"
            raise Refused("plugin", rule, repr(plugin)) from error
    found = _registered.get(plugin)
    if found is None or found.slot != slot:
        rule = f"must name a class with `@fet.{slot}`, and {module} has no such class {name}"
        raise Refused("plugin", rule, repr(plugin))
    _check_source(found.source, plugin, source)
    return found


def _check_source(found: str, plugin: str, source: str) -> None:
    if not found or found != source:
        rule = f"must be the SHA-256 of the file of {plugin} in this process, {found!r}"
        raise Refused("source", rule, repr(source) if source else "missing")
