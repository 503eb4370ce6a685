"""Encoders and methods in Python: adapters of a module of PyTorch, and of a class with its own backward pass.

The native module calls `run` and `learn` with bytes, in one thread. Arrays hold 32-bit floats.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fet.plugins import Invalid, Refused

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
        self._shapes: dict[str, tuple[int, ...]] = {}

    def parameters(self) -> dict[str, _Floats]:
        """Return the parameters by name."""
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

    def check_gradients(self, inputs: list[_Floats], output: _Floats, leaf: int | None) -> None:
        """Refuse a backward pass that does not belong to the forward pass."""
        raise NotImplementedError

    def refuse(self, problem: str) -> Invalid:
        """Make the error for a fault of the module."""
        return Invalid(f"`{self._setting}.plugin`: {self._plugin} {problem}")

    def described(self) -> _Described:
        """Return name, shape and values of each parameter."""
        parameters = self.parameters()
        if not parameters:
            raise self.refuse("has no parameters")
        for name, values in parameters.items():
            if not isinstance(values, np.ndarray) or values.dtype != np.float32:
                raise self.refuse(f"has a parameter `{name}` that is no array of 32-bit floats")
        self._shapes = {name: values.shape for name, values in parameters.items()}
        return [(name, values.shape, values.tobytes()) for name, values in parameters.items()]

    def overwrite(self, values: bytes) -> None:
        """Overwrite the parameters by the bytes of all of them, in the order in which they were described."""
        loaded, start, flat = {}, 0, np.frombuffer(values, dtype=np.float32)
        for name, shape in self._shapes.items():
            size = math.prod(shape)
            loaded[name] = flat[start : start + size].reshape(shape)
            start += size
        self.check_parameters()
        self.load(loaded)

    def check_parameters(self) -> None:
        """Refuse parameters that differ from those at the start."""
        if {name: values.shape for name, values in self.parameters().items()} != self._shapes:
            raise self.refuse("changes the names or shapes of its parameters; create all of them in `__init__`")

    def check(self, inputs: list[_Floats], leaf: int | None) -> None:
        """Test the laws on a few rows, so that a run computes nothing else than a prediction later."""
        output = np.asarray(self.forward(_copies(inputs), None, False, leaf))
        if not np.array_equal(np.asarray(self.forward(_copies(inputs), None, False, leaf)), output):
            raise self.refuse("gives another output for the same rows; an evaluation draws nothing and keeps no state")
        alone = np.asarray(self.forward(_copies([one[:1] for one in inputs]), None, False, leaf))
        if not np.allclose(alone, output[:1], rtol=1e-3, atol=1e-4):
            raise self.refuse("mixes rows: the output of a row depends on the other rows of its batch")
        self.check_parameters()
        self.check_gradients(inputs, output, leaf)
        self.check_parameters()

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
        own = self.parameters()
        for name, values in parameters.items():
            own[name][...] = values

    def forward(self, inputs: list[_Floats], seed: int | None, tracked: bool, leaf: int | None = None) -> Any:
        """Call `forward`."""
        self._has_leaf = leaf is not None
        return self._made.forward(*inputs)

    def backward(self, gradient: _Floats) -> tuple[dict[str, Any], Any]:
        """Call `backward`, which returns the gradients of the parameters, and that of the leaf if there is one."""
        found = self._made.backward(gradient)
        gradients, of_leaf = found, None
        if self._has_leaf:
            if not isinstance(found, tuple) or len(found) != 2:
                raise self.refuse("must return the tuple (gradients of the parameters, gradient of the memory) from `backward`")
            gradients, of_leaf = found
        if not isinstance(gradients, dict) or gradients.keys() != self._shapes.keys():
            raise self.refuse(f"must return a dictionary with the gradient of each parameter, {', '.join(self._shapes)}, from `backward`")
        return gradients, of_leaf

    def check_parameters(self) -> None:
        """Refuse parameters that differ from those at the start, or that are copies."""
        super().check_parameters()
        one, other = self.parameters(), self.parameters()
        if any(values.size and not np.shares_memory(values, other[name]) for name, values in one.items()):
            raise self.refuse("must return its arrays from `parameters()`, not copies: the program writes into them")

    def check_gradients(self, inputs: list[_Floats], output: _Floats, leaf: int | None) -> None:
        """Compare the gradients with differences of the output."""
        random = np.random.default_rng(1)
        weights = random.normal(size=output.shape).astype(np.float32)
        start = {name: values.copy() for name, values in self.parameters().items()}
        self.forward(_copies(inputs), 0, True, leaf)
        found, of_leaf = self.backward(weights.copy())
        found = {name: np.array(values, np.float32) for name, values in found.items()}
        self.learned(found)

        def of_parameters(direction: dict[str, Any], step: float) -> float:
            self.load({name: values + np.float32(step) * direction[name] for name, values in start.items()})
            return float(np.vdot(np.asarray(self.forward(_copies(inputs), 0, True, leaf), np.float64), weights))

        directions = [found, {name: random.normal(size=one.shape).astype(np.float32) for name, one in start.items()}]
        for direction in directions:
            if not _agrees(found, direction, of_parameters):
                raise self.refuse("has a `backward` that is not the gradient of `forward` by its parameters")
        self.load(start)
        if leaf is None:
            return
        if np.shape(of_leaf) != inputs[leaf].shape:
            raise self.refuse(f"returned a gradient of the memory of the shape {np.shape(of_leaf)}; it must be {inputs[leaf].shape}")

        def of_memory(direction: dict[str, Any], step: float) -> float:
            moved = _copies(inputs)
            moved[leaf] += np.float32(step) * direction["memory"]
            return float(np.vdot(np.asarray(self.forward(moved, 0, True, leaf), np.float64), weights))

        gradient = {"memory": np.array(of_leaf, np.float32)}
        for direction in (gradient, {"memory": random.normal(size=inputs[leaf].shape).astype(np.float32)}):
            if inputs[leaf].size and not _agrees(gradient, direction, of_memory):
                raise self.refuse("has a `backward` that is not the gradient of `forward` by the memory")


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
        if not isinstance(found, torch.Tensor):
            raise self.refuse(f"returned a {type(found).__name__} from `forward`; it must be a tensor")
        if tracked:
            if not found.requires_grad:
                raise self.refuse("returned an output without a gradient; do not detach it, and do not use `torch.no_grad`")
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

    def check_gradients(self, inputs: list[_Floats], output: _Floats, leaf: int | None) -> None:
        """Refuse tensors of the graph that the program would not train."""
        self.forward(_copies(inputs), 0, True, leaf)
        own = {id(one) for one in self._made.parameters()} | {id(self._leaf)}
        nodes, seen = [self._pending.grad_fn], set()
        while nodes:
            node = nodes.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if hasattr(node, "variable") and id(node.variable) not in own:
                shape = tuple(node.variable.shape)
                raise self.refuse(
                    f"uses a tensor of the shape {shape} that needs a gradient and is no parameter of the module; use "
                    "`torch.nn.Parameter`, and `torch.nn.ModuleList` in place of a list"
                )
            nodes += [one for one, _ in node.next_functions]
        self._pending = self._leaf = None


def _copies(arrays: list[_Floats]) -> list[_Floats]:
    return [one.copy() for one in arrays]


def _agrees(gradient: dict[str, Any], direction: dict[str, Any], value: Callable[[dict[str, Any], float], float]) -> bool:
    """Compare the derivative along a direction with differences of the value, for steps of several lengths."""
    length = math.sqrt(sum(float(np.vdot(one, one)) for one in direction.values()))
    if length == 0:
        return True
    unit = {name: one / np.float32(length) for name, one in direction.items()}
    size = math.sqrt(sum(float(np.vdot(one, one)) for one in gradient.values()))
    expected = sum(float(np.vdot(one, unit[name])) for name, one in gradient.items())
    for step in (1e-2, 1e-1, 1e-3):
        found = (value(unit, step) - value(unit, -step)) / (2 * step)
        if abs(found - expected) <= 0.05 * max(abs(found), abs(expected)) + 0.02 * size + 1e-4:
            return True
    return False


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
    made.module.check(_random((3, neighbours, keys), (3, neighbours, features)), None)
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
    made.module.check(_random((3, keys), (3, features), (3, *memory)), 2)
    return made


def _random(*shapes: tuple[int, ...]) -> list[_Floats]:
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


def _create(setting: str, plugin: str, cls: type, seed: int, make: Callable[..., Any]) -> Module:
    """Create a module twice, to see that its initial parameters depend only on the seed."""

    def created() -> Module:
        try:
            if not is_torch(cls):
                return Plain(setting, plugin, make(seed=seed))
            torch: Any = sys.modules["torch"]
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                return Torch(setting, plugin, make())
        except Invalid:
            raise
        except Exception as error:
            problem = f"must be a class that accepts its arguments ({type(error).__name__}: {error})"
            raise Refused("plugin", problem, repr(plugin)) from error

    made, other = created(), created()
    if made.described() != other.described():
        kind = "PyTorch" if is_torch(cls) else "its argument `seed`"
        raise made.refuse(f"has other initial parameters for the same seed; draw them with the generator of {kind}")
    return made
