"""Encoders and methods in Python: adapters of a module of PyTorch, and of a class with its own backward pass.

The native module calls `run` and `learn` with bytes, in one thread. Arrays hold 32-bit floats.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fet.errors import InputError

_Floats = npt.NDArray[np.float32]
_Described = list[tuple[str, tuple[int, ...], bytes]]


def numbers(values: bytes, shape: tuple[int, ...], kind: Any = np.float32) -> Any:
    """Make an array, which may be written to."""
    return np.frombuffer(bytearray(values), dtype=kind).reshape(shape) if values else np.zeros(shape, kind)


def is_torch(cls: type) -> bool:
    """True if a class is a module of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(cls, torch.nn.Module)


class Module:
    """Module of a user with its plug-in's path, and the setting that names it."""

    def __init__(self, setting: str, plugin: str) -> None:
        """Keep the path, for messages."""
        self._setting = setting
        self._plugin = plugin

    def parameters(self) -> dict[str, _Floats]:
        """Return the parameters by name, in a fixed order."""
        raise NotImplementedError

    def load(self, parameters: dict[str, _Floats]) -> None:
        """Overwrite the parameters."""
        raise NotImplementedError

    def forward(self, inputs: list[_Floats], seed: int | None, tracked: bool, leaf: int | None = None) -> Any:
        """Return the output; a training pass has a seed. `leaf` is the number of the input with a gradient."""
        raise NotImplementedError

    def backward(self, gradient: _Floats) -> tuple[dict[str, Any], Any]:
        """Return the gradients of the parameters that took part in the last tracked pass, and that of the leaf."""
        raise NotImplementedError

    def refuse(self, problem: str) -> InputError:
        """Make the error for a fault of the module."""
        return InputError(f"`{self._setting}.plugin`: {self._plugin} {problem}")

    def described(self) -> _Described:
        """Return name, shape and values of each parameter."""
        parameters = self.parameters()
        if not parameters:
            raise self.refuse("has no parameters")
        for name, values in parameters.items():
            if not isinstance(values, np.ndarray) or values.dtype != np.float32:
                raise self.refuse(f"has a parameter `{name}` that is no array of 32-bit floats")
        return [(name, values.shape, values.tobytes()) for name, values in parameters.items()]

    def overwrite(self, values: bytes) -> None:
        """Overwrite the parameters by the bytes of all of them."""
        loaded, start, flat = {}, 0, np.frombuffer(values, dtype=np.float32)
        for name, old in self.parameters().items():
            loaded[name] = flat[start : start + old.size].reshape(old.shape)
            start += old.size
        self.load(loaded)

    def sent(self, output: Any, shape: tuple[int, ...], axes: str) -> bytes:
        """Return an output as bytes."""
        found = np.asarray(output)
        if found.shape != shape:
            raise self.refuse(f"returned the shape {found.shape}; it must be {shape}, {axes}")
        return np.ascontiguousarray(found, dtype=np.float32).tobytes()

    def learned(self, found: dict[str, Any]) -> dict[str, bytes]:
        """Return gradients as bytes."""
        own = self.parameters()
        for name, values in found.items():
            if name not in own or np.shape(values) != own[name].shape:
                raise self.refuse(f"returned a gradient `{name}` that fits no parameter")
        return {name: np.ascontiguousarray(values, dtype=np.float32).tobytes() for name, values in found.items()}


class Plain(Module):
    """Class with its own `parameters`, `forward` and `backward`."""

    def __init__(self, setting: str, plugin: str, made: Any) -> None:
        """Adapt an object."""
        super().__init__(setting, plugin)
        self._made = made
        self._has_leaf = False

    def parameters(self) -> dict[str, _Floats]:
        """Return the object's arrays."""
        parameters: dict[str, _Floats] = self._made.parameters()
        return parameters

    def load(self, parameters: dict[str, _Floats]) -> None:
        """Write into the object's arrays."""
        for name, values in self.parameters().items():
            values[...] = parameters[name]

    def forward(self, inputs: list[_Floats], seed: int | None, tracked: bool, leaf: int | None = None) -> Any:
        """Call `forward`."""
        self._has_leaf = leaf is not None
        return self._made.forward(*inputs)

    def backward(self, gradient: _Floats) -> tuple[dict[str, Any], Any]:
        """Call `backward`, which returns the gradients of the parameters, and that of the leaf if there is one."""
        found = self._made.backward(gradient)
        if not self._has_leaf:
            return found, None
        if not isinstance(found, tuple) or len(found) != 2:
            raise self.refuse("must return the tuple (gradients of the parameters, gradient of the memory) from `backward`")
        return found


class Torch(Module):
    """Module of PyTorch, whose graph stays in PyTorch between the passes."""

    def __init__(self, setting: str, plugin: str, made: Any) -> None:
        """Adapt a module."""
        super().__init__(setting, plugin)
        self._torch: Any = sys.modules["torch"]
        self._made = made
        self._pending: Any = None
        self._leaf: Any = None
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

    def forward(self, inputs: list[_Floats], seed: int | None, tracked: bool, leaf: int | None = None) -> Any:
        """Call the module. Dropout depends only on the seed."""
        torch = self._torch
        tensors = [torch.from_numpy(one) for one in inputs]
        self._made.train(seed is not None)
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(tracked):
            if seed is not None:
                torch.manual_seed(seed)
            if tracked and leaf is not None:
                self._leaf = tensors[leaf].requires_grad_()
            found = self._made(*tensors)
        if tracked:
            self._pending = found
        return found.detach().numpy()

    def backward(self, gradient: _Floats) -> tuple[dict[str, Any], Any]:
        """Run the backward pass of the last graph."""
        self._made.zero_grad(set_to_none=True)
        pending, self._pending, leaf, self._leaf = self._pending, None, self._leaf, None
        pending.backward(self._torch.from_numpy(gradient))
        named = self._made.named_parameters()
        found = {name: one.grad.numpy() for name, one in named if one.grad is not None}
        if leaf is None:
            return found, None
        return found, np.zeros(leaf.shape, np.float32) if leaf.grad is None else leaf.grad.numpy()


class Encoder:
    """Encoder of a user."""

    def __init__(self, module: Module) -> None:
        """Keep the module."""
        self.module = module

    def run(
        self,
        arrays: tuple[bytes, bytes, bytes, bytes],
        sizes: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int]],
        seed: int | None,
        tracked: bool,
    ) -> bytes:
        """Load the parameters, encode the neighbours of each row, and return the representation."""
        self.module.overwrite(arrays[0])
        rows, neighbours, _ = shape = tuple(sizes[2])
        keys, features = (numbers(one, tuple(size)) for one, size in zip(arrays[1:3], sizes[:2]))
        slots = numbers(arrays[3], (rows, neighbours), np.int64)
        found = self.module.forward([keys[slots], features[slots]], seed, tracked)
        return self.module.sent(found, shape, "rows, neighbours and `hidden`")

    def learn(self, gradient: bytes, shape: tuple[int, int, int]) -> dict[str, bytes]:
        """Return the gradients of the parameters."""
        return self.module.learned(self.module.backward(numbers(gradient, tuple(shape)))[0])


class Method:
    """Model of a user at the primary."""

    # The memory is the third input.
    _MEMORY = 2

    def __init__(self, module: Module, outputs: int) -> None:
        """Keep the module and the number of its outputs."""
        self.module = module
        self._outputs = outputs

    def run(
        self,
        arrays: tuple[bytes, bytes, bytes, bytes],
        sizes: tuple[tuple[int, int], tuple[int, int], tuple[int, int, int]],
        seed: int | None,
    ) -> bytes:
        """Load the parameters, and return the output of each row."""
        self.module.overwrite(arrays[0])
        inputs = [numbers(one, tuple(size)) for one, size in zip(arrays[1:], sizes)]
        found = self.module.forward(inputs, seed, seed is not None, self._MEMORY)
        return self.module.sent(found, (sizes[0][0], self._outputs), "rows and `outputs`")

    def learn(self, gradient: bytes, shape: tuple[int, int], memory: tuple[int, int, int]) -> tuple[dict[str, bytes], bytes]:
        """Return the gradients of the parameters, and that of the memory."""
        found, of_memory = self.module.backward(numbers(gradient, tuple(shape)))
        if np.shape(of_memory) != tuple(memory):
            raise self.module.refuse(f"returned a gradient of the memory of the shape {np.shape(of_memory)}; it must be {memory}")
        return self.module.learned(found), np.ascontiguousarray(of_memory, dtype=np.float32).tobytes()


def create_encoder(plugin: str, cls: type, sizes: tuple[int, int, int, int], seed: int, options: dict[str, Any]) -> Encoder:
    """Create an encoder, and try it on zeros."""
    keys, features, hidden, neighbours = sizes
    made = Encoder(_create("encoder", plugin, cls, seed, lambda **more: cls(keys, features, hidden, **more, **options)))
    values = b"".join(one for _, _, one in made.module.described())
    zeros = (values, bytes(4 * keys), bytes(4 * features), bytes(8 * 2 * neighbours))
    made.run(zeros, ((1, keys), (1, features), (2, neighbours, hidden)), None, False)
    return made


def create_method(
    plugin: str, cls: type, sizes: tuple[int, int, tuple[int, int], int], seed: int, options: dict[str, Any]
) -> Method:
    """Create a model at the primary, and try it on two rows of zeros."""
    keys, features, memory, outputs = sizes
    arguments = (keys, features, tuple(memory), outputs)
    made = Method(_create("method", plugin, cls, seed, lambda **more: cls(*arguments, **more, **options)), outputs)
    values = b"".join(one for _, _, one in made.module.described())
    zeros = (values, bytes(8 * keys), bytes(8 * features), bytes(8 * memory[0] * memory[1]))
    made.run(zeros, ((2, keys), (2, features), (2, *memory)), None)
    return made


def _create(setting: str, plugin: str, cls: type, seed: int, make: Callable[..., Any]) -> Module:
    """Create a module; a class without PyTorch gets the seed."""
    if not is_torch(cls):
        return Plain(setting, plugin, make(seed=seed))
    torch: Any = sys.modules["torch"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Torch(setting, plugin, make())
