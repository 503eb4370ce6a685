"""Encoders in Python: adapters of a module of PyTorch, and of a class with its own backward pass.

The native module calls `run` and `learn` with bytes, in one thread. Arrays hold 32-bit floats.
"""

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from fet.errors import InputError

_Floats = npt.NDArray[np.float32]
_Sizes = tuple[tuple[int, int], tuple[int, int], tuple[int, int, int]]


def numbers(values: bytes, shape: tuple[int, ...], kind: Any = np.float32) -> Any:
    """Make an array, which may be written to."""
    return np.frombuffer(bytearray(values), dtype=kind).reshape(shape) if values else np.zeros(shape, kind)


def is_torch(cls: type) -> bool:
    """True if a class is a module of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(cls, torch.nn.Module)


class Module:
    """Module of a user with its plug-in's path."""

    def __init__(self, plugin: str) -> None:
        """Keep the path, for messages."""
        self._plugin = plugin

    def parameters(self) -> dict[str, _Floats]:
        """Return the parameters by name, in a fixed order."""
        raise NotImplementedError

    def load(self, parameters: dict[str, _Floats]) -> None:
        """Overwrite the parameters."""
        raise NotImplementedError

    def forward(self, keys: _Floats, features: _Floats, seed: int | None, tracked: bool) -> Any:
        """Return the representation; a training pass has a seed."""
        raise NotImplementedError

    def backward(self, gradient: _Floats) -> dict[str, Any]:
        """Return the gradients of the parameters that took part in the last tracked pass."""
        raise NotImplementedError

    def refuse(self, problem: str) -> InputError:
        """Make the error for a fault of the module."""
        return InputError(f"`encoder.plugin`: {self._plugin} {problem}")

    def described(self) -> list[tuple[str, tuple[int, ...], bytes]]:
        """Return name, shape and values of each parameter."""
        parameters = self.parameters()
        if not parameters:
            raise self.refuse("has no parameters")
        for name, values in parameters.items():
            if not isinstance(values, np.ndarray) or values.dtype != np.float32:
                raise self.refuse(f"has a parameter `{name}` that is no array of 32-bit floats")
        return [(name, values.shape, values.tobytes()) for name, values in parameters.items()]

    def run(self, arrays: tuple[bytes, bytes, bytes, bytes], sizes: _Sizes, seed: int | None, tracked: bool) -> bytes:
        """Load the parameters, encode the neighbours of each row, and return the representation."""
        loaded, start = {}, 0
        values = np.frombuffer(arrays[0], dtype=np.float32)
        for name, old in self.parameters().items():
            loaded[name] = values[start : start + old.size].reshape(old.shape)
            start += old.size
        self.load(loaded)
        rows, neighbours, _ = shape = tuple(sizes[2])
        keys, features = (numbers(one, tuple(size)) for one, size in zip(arrays[1:3], sizes[:2]))
        slots = numbers(arrays[3], (rows, neighbours), np.int64)
        found = np.asarray(self.forward(keys[slots], features[slots], seed, tracked))
        if found.shape != shape:
            raise self.refuse(f"returned the shape {found.shape}; it must be {shape}, rows, neighbours and `hidden`")
        return np.ascontiguousarray(found, dtype=np.float32).tobytes()

    def learn(self, gradient: bytes, shape: tuple[int, int, int]) -> dict[str, bytes]:
        """Return the gradients as bytes."""
        found = self.backward(numbers(gradient, tuple(shape)))
        own = self.parameters()
        for name, values in found.items():
            if name not in own or np.shape(values) != own[name].shape:
                raise self.refuse(f"returned a gradient `{name}` that fits no parameter")
        return {name: np.ascontiguousarray(values, dtype=np.float32).tobytes() for name, values in found.items()}


class Plain(Module):
    """Class with its own `parameters`, `forward` and `backward`."""

    def __init__(self, plugin: str, made: Any) -> None:
        """Adapt an object."""
        super().__init__(plugin)
        self._made = made

    def parameters(self) -> dict[str, _Floats]:
        """Return the object's arrays."""
        parameters: dict[str, _Floats] = self._made.parameters()
        return parameters

    def load(self, parameters: dict[str, _Floats]) -> None:
        """Write into the object's arrays."""
        for name, values in self.parameters().items():
            values[...] = parameters[name]

    def forward(self, keys: _Floats, features: _Floats, seed: int | None, tracked: bool) -> Any:
        """Call `forward`."""
        return self._made.forward(keys, features)

    def backward(self, gradient: _Floats) -> dict[str, Any]:
        """Call `backward`."""
        gradients: dict[str, Any] = self._made.backward(gradient)
        return gradients


class Torch(Module):
    """Module of PyTorch, whose graph stays in PyTorch between the passes."""

    def __init__(self, plugin: str, made: Any) -> None:
        """Adapt a module."""
        super().__init__(plugin)
        self._torch: Any = sys.modules["torch"]
        self._made = made
        self._pending: Any = None
        if any(True for _ in made.buffers()):
            raise self.refuse("has buffers, such as running means; a run saves only parameters")

    def parameters(self) -> dict[str, _Floats]:
        """Return copies of the parameters."""
        return {name: one.detach().cpu().numpy() for name, one in self._made.named_parameters()}

    def load(self, parameters: dict[str, _Floats]) -> None:
        """Copy into the parameters."""
        with self._torch.no_grad():
            for name, one in self._made.named_parameters():
                one.copy_(self._torch.from_numpy(parameters[name].copy()))

    def forward(self, keys: _Floats, features: _Floats, seed: int | None, tracked: bool) -> Any:
        """Call the module. Dropout depends only on the seed."""
        torch = self._torch
        self._made.train(seed is not None)
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(tracked):
            if seed is not None:
                torch.manual_seed(seed)
            found = self._made(torch.from_numpy(keys), torch.from_numpy(features))
        if tracked:
            self._pending = found
        return found.detach().numpy()

    def backward(self, gradient: _Floats) -> dict[str, Any]:
        """Run the backward pass of the last graph."""
        self._made.zero_grad(set_to_none=True)
        pending, self._pending = self._pending, None
        pending.backward(self._torch.from_numpy(gradient))
        named = self._made.named_parameters()
        return {name: one.grad.numpy() for name, one in named if one.grad is not None}


def create(plugin: str, cls: type, sizes: tuple[int, int, int, int], seed: int, options: dict[str, Any]) -> Module:
    """Create a module, and try it on zeros."""
    keys, features, hidden, neighbours = sizes
    made: Module
    if is_torch(cls):
        torch: Any = sys.modules["torch"]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            made = Torch(plugin, cls(keys, features, hidden, **options))
    else:
        made = Plain(plugin, cls(keys, features, hidden, seed=seed, **options))
    values = b"".join(one for _, _, one in made.described())
    zeros = (values, bytes(4 * keys), bytes(4 * features), bytes(8 * 2 * neighbours))
    made.run(zeros, ((1, keys), (1, features), (2, neighbours, hidden)), None, False)
    return made
