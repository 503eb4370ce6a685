"""Attacks in Python: the environment of an attack, and adapters of its hooks and observers.

The code of an attack runs in its own thread, and asks the program through the native module. Hooks and observers are called
in the thread of the other plug-ins, while the attack waits for its run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fet.modules import numbers
from fet.plugins import Invalid, Measure, keys_of

_Numbers = tuple[int, bytes]
_Rows = Sequence[int] | npt.NDArray[np.integer[Any]]


class Round(NamedTuple):
    """The step of a run that a message belongs to.

    `kind` is "train", "validation", "test", "once", "average", "probe" or "predict". `number` is the training step or
    the epoch, from 0.
    """

    kind: str
    number: int
    batch: int


@dataclass(frozen=True)
class Setting:
    """Properties of an experiment that are known before it trains."""

    task: str
    classes: int
    secondaries: int
    seed: int
    learning: bool
    summed: bool


@dataclass(frozen=True)
class Tables:
    """Tables of all parties before scaling: labels, and keys and features of each party, the primary first."""

    labels: npt.NDArray[np.float64]
    keys: list[Any]
    features: list[npt.NDArray[np.float32]]


@dataclass
class Message:
    """A gradient or a representation. A hook changes the message by writing to `values` or `learning_rate`.

    `values` has the shape [rows, positions, width]. A representation has no learning rate.
    """

    round: Round
    rows: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]
    learning_rate: float | None = None


class _Hook:
    """Hook of a user."""

    def __init__(self, hook: Any) -> None:
        self._hook = hook

    def gradient(self, *sent: Any) -> tuple[bytes | None, float | None]:
        """Show a gradient before the honest program receives it."""
        return self._show("gradient", *sent)

    def representation(self, *sent: Any) -> tuple[bytes | None, float | None]:
        """Show a representation before the party sends it."""
        return self._show("representation", *sent)

    def _show(
        self, name: str, round: tuple[str, int, int], rows: list[int], shape: tuple[int, ...], values: bytes, rate: Any
    ) -> tuple[bytes | None, float | None]:
        method = getattr(self._hook, name, None)
        if method is None:
            return None, None
        own = np.array(rows, np.int64)
        own.flags.writeable = False
        message = Message(Round(*round), own, numbers(values, shape), rate)
        method(message)
        changed = np.ascontiguousarray(message.values, np.float32)
        if changed.shape != tuple(shape):
            raise Invalid(f"a hook changed the shape of a {name} from {tuple(shape)} to {changed.shape}")
        left = changed.tobytes()
        return None if left == values else left, message.learning_rate


class _Observer:
    """Observer of a user."""

    def __init__(self, observer: Any) -> None:
        self._observer = observer

    def received(
        self, round: tuple[str, int, int], rows: list[int], active: list[int], parts: list[tuple[tuple[int, ...], bytes]]
    ) -> None:
        """Show the parts of the active parties, or their sum."""
        method = getattr(self._observer, "received", None)
        if method is not None:
            arrays = [numbers(values, shape) for shape, values in parts]
            method(Round(*round), np.array(rows, np.int64), active, arrays)

    def predicted(self, round: tuple[str, int, int], rows: list[int], outputs: _Numbers) -> None:
        """Show the outputs of the model."""
        method = getattr(self._observer, "predicted", None)
        if method is not None:
            method(Round(*round), np.array(rows, np.int64), _table(outputs, len(rows)))


@dataclass
class _Asked:
    """A run that the attack asks for, as the native module reads it."""

    hook: _Hook | None
    observer: _Observer | None
    labels: bytes | None = None
    features: dict[int, _Numbers] = field(default_factory=dict)
    records: dict[int, list[int]] = field(default_factory=dict)
    tested: tuple[int, int, bytes] | None = None
    quiet: bool = False
    untrained: bool = False
    withhold: bool = False


class Trained:
    """A finished run.

    `metric` is the test metric of the best epoch, or NaN for a run without training; `train`, `validation` and `test`
    are the rows of the parts. Parties count from 1.
    """

    def __init__(self, bridge: Any, number: int, rows: int) -> None:
        """Describe the run with this number."""
        self._bridge = bridge
        self._number = number
        self._rows = rows
        self.metric: float
        self.metric, parts = bridge.described(number)
        self.train, self.validation, self.test = (np.array(part, np.int64) for part in parts)

    def __del__(self) -> None:
        """Free the run in the program."""
        self._bridge.forget(self._number)

    def features(self, party: int, rows: _Rows) -> npt.NDArray[np.float32]:
        """Return the secondary's features of the record nearest to each row, scaled as its model sees them."""
        return self._columns("features", party, rows)

    def keys(self, party: int, rows: _Rows) -> npt.NDArray[np.float32]:
        """Return the keys of that record, scaled in the same way."""
        return self._columns("keys", party, rows)

    def encoded(self, party: int, rows: _Rows) -> npt.NDArray[np.float32]:
        """Return the secondary's representations of these rows, before clipping, noise and masks."""
        return self._columns("encoded", party, rows)

    def own_columns(self, rows: _Rows) -> npt.NDArray[np.float32]:
        """Return the primary's own keys and features, as its model sees them."""
        return self._columns("own", 0, rows)

    def shown(self, party: int, rows: _Rows) -> list[list[int]]:
        """Return the records that are shown for each row, most similar first."""
        found: list[list[int]] = self._bridge.shown(self._number, party, self._places(rows))
        return found

    def similarity(self, party: int, rows: _Rows) -> npt.NDArray[np.float32] | None:
        """Return the similarity of the nearest record of each row; `None` if the linker gives none."""
        found = self._bridge.similarity(self._number, party, self._places(rows))
        return None if found is None else np.array(found, np.float32)

    def _columns(self, which: str, party: int, rows: _Rows) -> npt.NDArray[np.float32]:
        places = self._places(rows)
        return _table(self._bridge.columns(self._number, which, party, places), len(places))

    def _places(self, rows: _Rows) -> list[int]:
        return _integers("rows", rows, self._rows)


class _Bridge:
    """The native module's part, which answers one question at a time."""

    def __init__(self, bridge: Any) -> None:
        """Guard the native module."""
        self._bridge = bridge
        self._is_asked = False

    def forget(self, number: int) -> None:
        """Free a run."""
        self._bridge.forget(number)

    def __getattr__(self, name: str) -> Any:
        """Return a question; a hook or an observer that asks one would wait for the run that waits for it."""

        def ask(*arguments: Any) -> Any:
            if self._is_asked:
                raise Invalid("a hook or an observer must not train or read a run; the attack waits for its own run")
            self._is_asked = True
            try:
                return getattr(self._bridge, name)(*arguments)
            finally:
                self._is_asked = False

        return ask


class Environment:
    """The environment of an attack: it trains runs of one experiment, in which the attack plays one party.

    `setting` has the properties of the experiment, and `party` the number of the attacked or attacking secondary. `tables`
    has the data of the attacker, and the truth to measure its success.
    """

    def __init__(self, bridge: Any, setting: Setting) -> None:
        """Read the tables."""
        self._bridge = _Bridge(bridge)
        self.setting = setting
        self.party: int = bridge.party
        labels, tables = self._bridge.tables()
        keys = [keys_of((cells, columns)) for cells, columns, _ in tables]
        features = [_table(features, len(own)) for own, (_, _, features) in zip(keys, tables)]
        self.tables = Tables(np.frombuffer(bytearray(labels), np.float64), keys, features)

    def train(
        self,
        hook: object = None,
        observer: object = None,
        *,
        labels: Any = None,
        features: Mapping[int, Any] | None = None,
        records: Mapping[int, _Rows] | None = None,
        tested: tuple[int, Any] | None = None,
        quiet: bool = False,
        untrained: bool = False,
        withhold: bool = False,
    ) -> Trained:
        """Train a run.

        - `hook`: an object that changes the messages of the secondary. Its methods `gradient(message)` and
          `representation(message)` are optional.
        - `observer`: an object that sees all that the primary receives. Its methods
          `received(round, rows, active, parts)` and `predicted(round, rows, outputs)` are optional.
        - `labels`, and `features` by party, the primary as 0: arrays that replace those of the experiment.
        - `records`: the records that a secondary keeps, by party.
        - `tested`: a secondary, and the features that it has in the test alone.
        - `quiet`: true to leave out noise; `untrained`: true to stop after linking; `withhold`: true if the primary sends no
          gradients.
        """
        _check_methods("hook", hook, ("gradient", "representation"))
        _check_methods("observer", observer, ("received", "predicted"))
        asked = _Asked(
            None if hook is None else _Hook(hook),
            None if observer is None else _Observer(observer),
            quiet=quiet,
            untrained=untrained,
            withhold=withhold,
        )
        if labels is not None:
            new = self._like("labels", labels, self.tables.labels)
            classes = self.setting.classes
            if classes and not np.isin(new, np.arange(classes)).all():
                raise Invalid(f"labels that are not classes; they must be 0 to {classes - 1}")
            asked.labels = new.tobytes()
        for party, values in (features or {}).items():
            asked.features[party] = self._features(party, values)
        for party, kept in (records or {}).items():
            self._check_party(party, 1)
            asked.records[party] = _integers("records", kept, len(self.tables.keys[party]))
        if tested is not None:
            self._check_party(tested[0], 1)
            asked.tested = (tested[0], *self._features(*tested))
        return Trained(self._bridge, self._bridge.train(asked), len(self.tables.labels))

    def _features(self, party: int, values: Any) -> _Numbers:
        self._check_party(party, 0)
        old = self.tables.features[party]
        return old.shape[1], self._like(f"features of party {party}", values, old).tobytes()

    def _check_party(self, party: int, first: int) -> None:
        if not isinstance(party, int) or not first <= party <= self.setting.secondaries:
            raise Invalid(f"party {party!r} must be {first} to {self.setting.secondaries}")

    def _like(self, name: str, values: Any, old: Any) -> Any:
        array = np.ascontiguousarray(values, old.dtype)
        if array.shape != old.shape:
            raise Invalid(f"{name} of the shape {array.shape}; they must have the shape {old.shape} of the experiment")
        if not np.isfinite(array).all():
            raise Invalid(f"{name} that are not finite numbers")
        return array


def _check_methods(name: str, given: object, methods: tuple[str, str]) -> None:
    if given is not None and not any(callable(getattr(given, method, None)) for method in methods):
        raise Invalid(f"`{name}`: must have a method `{methods[0]}` or `{methods[1]}`; {given!r} has neither")


def run(plugin: str, made: Any, bridge: Any, setting: Setting) -> list[tuple[str, float, float, float]]:
    """Run an attack and check its measures."""
    measures = made.attack(Environment(bridge, setting))
    if isinstance(measures, Measure):
        measures = [measures]
    if not isinstance(measures, Sequence) or not measures or not all(isinstance(one, Measure) for one in measures):
        raise Invalid(f"{plugin} returned {measures!r}; it must be `fet.Measure`, or a list of them")
    found = [(str(name), float(value), float(baseline), float(perfect)) for name, value, baseline, perfect in measures]
    if len({name for name, *_ in found} - {""}) < len(found):
        raise Invalid(f"{plugin} returned measures without a name, or with the same name")
    if found[0][2] == found[0][3]:
        raise Invalid(f"{plugin} returned a measure whose `baseline` is `perfect`, so that it cannot show a success")
    for name, *values in found:
        if not np.isfinite(values).all():
            raise Invalid(f"{plugin} returned the measure {name!r} with {values}; they must be finite")
    return found


def _table(sent: _Numbers, rows: int) -> npt.NDArray[np.float32]:
    columns, values = sent
    table: npt.NDArray[np.float32] = numbers(values, (rows, columns))
    return table


def _integers(name: str, values: _Rows, length: int) -> list[int]:
    array = np.asarray(values)
    if array.size == 0:
        return []
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= length:
        raise Invalid(f"{name} must be integers from 0 to {length - 1}")
    found: list[int] = array.tolist()
    return found
