"""Aggregators in Python: an adapter of a module of PyTorch, and of a class with its own backward pass.

The native module calls `width`, `combine` and `spread`, in one thread. Arrays hold 32-bit floats.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fet.modules import is_torch, numbers
from fet.plugins import Invalid, Refused

# An array as the native module has it: its shape and its bytes.
_Sent = tuple[tuple[int, ...], bytes]
_SentRound = tuple[int, list[int], list[tuple[int, int, int]], list[_Sent]]

_SEES = ("parts", "sum")
_SETTING = "`aggregator.plugin`: "


@dataclass(frozen=True)
class Aggregation:
    """The participants of one aggregation.

    `parties` is the number of secondaries. `active` has the numbers of those that answered, ascending from 0, and
    `shapes` the shape [rows, positions, hidden] of each one's representation. `similarities` has an array
    [rows, positions] for each, standardised; it is empty unless the class has `similarities = True`.
    """

    parties: int
    active: list[int]
    shapes: list[tuple[int, int, int]]
    similarities: list[Any]


class Aggregator:
    """Aggregator of a user with its plug-in's path."""

    def __init__(self, plugin: str, made: Any, sums: bool) -> None:
        """Adapt an object that sees the sum, or else the representations."""
        self._plugin = plugin
        self._made = made
        self._sums = sums
        # The round of the last memory, its parts and the memory itself, until its gradient is known.
        self._last: tuple[Aggregation, list[Any], Any] | None = None
        self._torch: Any = sys.modules["torch"] if is_torch(type(made)) else None

    def width(self, parties: int, hidden: int) -> int:
        """Return the width of the memory."""
        width = self._made.width(parties, hidden) if hasattr(self._made, "width") else hidden
        if not isinstance(width, int) or width < 1:
            raise self._refuse(f"has the width {width!r}; it must be an integer above 0")
        return width

    def combine(self, sent: list[_Sent], sent_round: _SentRound) -> list[_Sent]:
        """Return the memory of the representations, or of their sum."""
        round, parts = _round(sent_round), [numbers(values, shape) for shape, values in sent]
        # The class may write to its arrays.
        self._last = None
        memory = self._forward([part.copy() for part in parts], round)
        self._last = (round, parts, memory)
        return [_send(memory)]

    def spread(self, sent: list[_Sent], sent_round: _SentRound) -> list[_Sent]:
        """Return the gradient of each representation, or of their sum."""
        ((shape, values),) = sent
        round, gradient = _round(sent_round), numbers(values, shape)
        found = self._backward(gradient.copy(), round)
        last, self._last = self._last, None
        if last is not None and _is_same(last[0], round) and last[2].shape == gradient.shape:
            self._compare(last[1], last[2], gradient, found)
        return [_send(one) for one in found]

    def _compare(self, parts: list[Any], memory: Any, gradient: Any, found: list[Any]) -> None:
        """Refuse gradients that do not belong to the memory: <memory, gradient> = sum of <part, its gradient>."""
        expected, wrong = np.vdot(memory.astype(np.float64), gradient), 0.0
        size = np.abs(memory * gradient).sum(dtype=np.float64)
        for part, own in zip(parts, found):
            wrong += np.vdot(part.astype(np.float64), own)
            size += np.abs(part * own).sum(dtype=np.float64)
        if not abs(expected - wrong) <= 1e-4 * size + 1e-9:
            raise self._refuse("has a `backward` that is not the gradient of `forward` for the records of this run")

    def check(self, parties: int) -> None:
        """Test the laws on the first three of some parties, so that training finds no wrong gradient."""
        shape = (3, 4, 5)
        random = np.random.default_rng(0)
        similarities = [random.normal(size=shape[:2]).astype(np.float32) for _ in range(3)]
        round = Aggregation(parties, [0, 1, 2], [shape] * 3, similarities if _uses_similarities(self._made) else [])
        one, other = (
            [random.normal(size=shape).astype(np.float32) for _ in range(1 if self._sums else 3)] for _ in range(2)
        )
        memory = self._forward(one, round)
        if (self._forward(one, round) != memory).any():
            raise self._refuse("gives another memory for the same representations")
        alone = Aggregation(parties, [0, 1, 2], [(1, 4, 5)] * 3, [rows[:1] for rows in round.similarities])
        if not np.allclose(self._forward([part[:1] for part in one], alone), memory[:1], rtol=1e-4, atol=1e-4):
            raise self._refuse("mixes rows: the memory of a row depends on the other rows of its batch")
        mixed = self._forward([2 * a + b for a, b in zip(one, other)], round)
        if not np.allclose(mixed, 2 * memory + self._forward(other, round), rtol=1e-4, atol=1e-4):
            raise self._refuse("is not linear in the representations, so the secondaries would get a wrong gradient")
        gradient = random.normal(size=memory.shape).astype(np.float32)
        expected = (memory * gradient).sum(dtype=np.float64)
        found = sum((a * b).sum(dtype=np.float64) for a, b in zip(one, self._backward(gradient, round)))
        if not np.isclose(found, expected, rtol=1e-4, atol=1e-3):
            raise self._refuse("has a `backward` that is not the gradient of `forward`")

    def _forward(self, parts: list[npt.NDArray[np.float32]], round: Aggregation) -> npt.NDArray[np.float32]:
        if self._torch is None:
            found = self._made.forward(parts[0] if self._sums else parts, round)
        else:
            with self._torch.no_grad():
                found = self._call([self._torch.from_numpy(part) for part in parts], round).numpy()
        rows, _, hidden = round.shapes[0]
        positions = max(shape[1] for shape in round.shapes)
        return self._checked("a memory", found, (rows, positions, self.width(round.parties, hidden)))

    def _backward(self, gradient: npt.NDArray[np.float32], round: Aggregation) -> list[npt.NDArray[np.float32]]:
        shapes = round.shapes[:1] if self._sums else round.shapes
        if self._torch is None:
            found = self._made.backward(gradient, round)
            found = [found] if self._sums else found
        else:
            # The memory is linear in the representations, so its gradient is the same at zeros.
            parts = [self._torch.zeros(shape, requires_grad=True) for shape in shapes]
            with self._torch.enable_grad():
                memory = self._call(parts, round)
            found = self._torch.autograd.grad(memory, parts, self._torch.from_numpy(gradient), allow_unused=True)
            found = [np.zeros(shape, np.float32) if one is None else one.numpy() for one, shape in zip(found, shapes)]
        if len(found) != len(shapes):
            raise self._refuse(f"returned {len(found)} gradients for {len(shapes)} representations")
        return [self._checked("a gradient", one, shape) for one, shape in zip(found, shapes)]

    def _call(self, parts: list[Any], round: Aggregation) -> Any:
        """Call a module of PyTorch."""
        similarities = [self._torch.from_numpy(one) for one in round.similarities]
        round = Aggregation(round.parties, round.active, round.shapes, similarities)
        return self._made(parts[0] if self._sums else parts, round)

    def _checked(self, name: str, found: Any, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        array = np.asarray(found, dtype=np.float32)
        if array.shape != shape:
            raise self._refuse(f"returned {name} of the shape {array.shape}; it must be {shape}")
        return array

    def _refuse(self, problem: str) -> Invalid:
        return Invalid(f"{_SETTING}{self._plugin} {problem}")


def _send(array: npt.NDArray[np.float32]) -> _Sent:
    return array.shape, np.ascontiguousarray(array).tobytes()


def _round(sent: _SentRound) -> Aggregation:
    parties, active, shapes, similarities = sent
    arrays = [numbers(values, shape) for shape, values in similarities]
    return Aggregation(parties, list(active), [(rows, positions, width) for rows, positions, width in shapes], arrays)


def _is_same(one: Aggregation, other: Aggregation) -> bool:
    pairs = zip(one.similarities, other.similarities)
    return (one.active, one.shapes) == (other.active, other.shapes) and all((a == b).all() for a, b in pairs)


def _uses_similarities(made: Any) -> bool:
    return bool(getattr(made, "similarities", False))


def create(plugin: str, made: Any, sums: bool) -> tuple[Aggregator, bool]:
    """Adapt an object, test its laws, and return true with it if it needs similarities.

    `sums` is true if the experiment has secure aggregation for the class.
    """
    sees = getattr(made, "sees", "parts")
    if sees not in _SEES:
        raise Refused("plugin", f"must have `sees` as one of {', '.join(_SEES)}", f"{plugin} with {sees!r}")
    if sums and sees != "sum":
        raise Refused("secure", f"must be missing: {plugin} sees each representation", "there")
    if sees == "sum" and not sums:
        raise Refused("secure", f"must be a table, as `fet.aggregator_settings` writes: {plugin} sees only the sum", "missing")
    if sums and _uses_similarities(made):
        rule = "must have no `similarities` with `sees = \"sum\"`: similarities are not summed, so they reveal each party"
        raise Refused("plugin", rule, repr(plugin))
    for name in ("forward",) if is_torch(type(made)) else ("forward", "backward"):
        if not callable(getattr(made, name, None)):
            raise Refused("plugin", f"must have a method `{name}`", repr(plugin))
    if is_torch(type(made)):
        if any(True for _ in made.parameters()) or any(True for _ in made.buffers()):
            raise Refused("plugin", "must have no parameters and no buffers: a run neither trains nor saves them", repr(plugin))
        made.eval()
    adapter = Aggregator(plugin, made, sums)
    try:
        adapter.check(3)
        adapter.check(5)
    except Invalid as error:
        problem = str(error).removeprefix(_SETTING)
        raise Refused("plugin", f"must name a class that aggregates, but {problem}", repr(plugin)) from error
    except Exception as error:
        rule = f"must name a class that aggregates three parties ({type(error).__name__}: {error})"
        raise Refused("plugin", rule, repr(plugin)) from error
    return adapter, _uses_similarities(made)
