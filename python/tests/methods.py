"""Models at the primary for the tests of plug-ins, with and without PyTorch."""

from typing import Any

import numpy as np

import fet


@fet.method
class Linear:
    """Linear map of the primary's columns and of the memory, with its own backward pass."""

    def __init__(self, keys: int, features: int, memory: tuple[int, int], outputs: int, seed: int, scale: float = 1.0) -> None:
        random, inputs = np.random.default_rng(seed), keys + features + memory[0] * memory[1]
        weights = random.normal(0, scale / inputs**0.5, (inputs, outputs))
        self.arrays = {"weights": weights.astype(np.float32), "bias": np.zeros(outputs, np.float32)}
        self.memory = memory

    def parameters(self) -> dict[str, Any]:
        return self.arrays

    def forward(self, keys: Any, features: Any, memory: Any) -> Any:
        self.inputs = np.concatenate([keys, features, memory.reshape(len(keys), -1)], axis=1)
        return self.inputs @ self.arrays["weights"] + self.arrays["bias"]

    def backward(self, gradient: Any) -> Any:
        size = self.memory[0] * self.memory[1]
        of_inputs = gradient @ self.arrays["weights"].T
        of_memory = of_inputs[:, of_inputs.shape[1] - size :].reshape(len(gradient), *self.memory)
        return {"weights": self.inputs.T @ gradient, "bias": gradient.sum(axis=0)}, of_memory


@fet.method
class Faulty(Linear):
    """Has the fault of its argument."""

    def __init__(self, *sizes: Any, seed: int, fault: str) -> None:
        super().__init__(*sizes, seed=int(np.random.default_rng().integers(1000)) if fault == "unseeded" else seed)
        self.fault = fault
        self.calls = self.backwards = 0

    def parameters(self) -> dict[str, Any]:
        found = super().parameters()
        if self.fault == "copies":
            return {name: values.copy() for name, values in found.items()}
        if self.fault == "new" and self.calls > 2:
            return {**found, "more": found["bias"]}
        return found

    def forward(self, keys: Any, features: Any, memory: Any) -> Any:
        self.calls += 1
        found = super().forward(keys, features, memory)
        if self.fault == "state":
            return found + self.calls
        if self.fault == "narrow":
            return found[:, 1:]
        if self.fault == "rows":
            return found + found.mean(axis=0)
        return found

    def backward(self, gradient: Any) -> Any:
        found, of_memory = super().backward(gradient)
        # The test before a run makes one backward pass.
        self.backwards += 1
        if self.fault == "late" and self.backwards > 1:
            raise RuntimeError("no gradient today")
        if self.fault == "missing":
            del found["bias"]
        if self.fault == "alone":
            return found
        if self.fault == "flat":
            return found, of_memory.reshape(len(gradient), -1)
        if self.fault == "twice":
            return {name: 2 * values for name, values in found.items()}, of_memory
        if self.fault == "zero" and self.backwards > 1:
            return found, 0 * of_memory
        if self.fault == "memory":
            return found, 2 * of_memory
        return found, of_memory


try:
    import torch
except ImportError:
    pass
else:

    @fet.method
    class Attention(torch.nn.Module):
        """Attends from the primary's record to the memory; also predicts without other parties."""

        def __init__(self, keys: int, features: int, memory: tuple[int, int], outputs: int, width: int = 16) -> None:
            super().__init__()
            self.own = torch.nn.Linear(keys + features, width)
            self.others = torch.nn.Linear(memory[1], width) if memory[0] else None
            self.dropout = torch.nn.Dropout(0.1)
            self.out = torch.nn.Linear(width, outputs)

        def forward(self, keys: Any, features: Any, memory: Any) -> Any:
            own = torch.relu(self.own(torch.cat([keys, features], dim=1)))
            if self.others is not None:
                records = self.others(memory)
                weights = torch.softmax((records @ own.unsqueeze(2)).squeeze(2), dim=1)
                own = own + (weights.unsqueeze(2) * records).sum(dim=1)
            return self.out(self.dropout(own))

    @fet.method
    class Hidden(Attention):
        """Has the fault of its argument, and parameters that the program does not see."""

        def __init__(self, *sizes: Any, fault: str) -> None:
            super().__init__(*sizes)
            self.fault = fault
            self.layers = [torch.nn.Linear(sizes[3], sizes[3])]
            self.factor = torch.ones(sizes[3], requires_grad=True)

        def forward(self, keys: Any, features: Any, memory: Any) -> Any:
            found = super().forward(keys, features, memory)
            if self.fault == "list":
                return self.layers[0](found)
            if self.fault == "tensor":
                return found * self.factor
            if self.fault == "created":
                return torch.nn.Linear(found.shape[1], found.shape[1])(found)
            if self.fault == "added":
                self.late = torch.nn.Linear(found.shape[1], found.shape[1])
                return self.late(found)
            if self.fault == "detached":
                return found.detach()
            if self.fault == "tuple":
                return found, memory
            return found
