"""Aggregators for the tests of plug-ins, with and without PyTorch."""

import time
from typing import Any

import numpy as np

import fet


@fet.aggregator
class Mean:
    """Mean of the representations, as `average`."""

    def forward(self, parts: Any, round: Any) -> Any:
        return np.sum(parts, axis=0) / np.float32(len(parts))

    def backward(self, gradient: Any, round: Any) -> Any:
        return [gradient / np.float32(len(round.active))] * len(round.active)


@fet.aggregator
class Near:
    """Mean with the weights of `similarity-weighted`."""

    similarities = True

    def weights(self, round: Any) -> Any:
        shares = np.exp(np.stack(round.similarities))
        return (shares / shares.sum(axis=0))[..., None]

    def forward(self, parts: Any, round: Any) -> Any:
        return (self.weights(round) * np.stack(parts)).sum(axis=0)

    def backward(self, gradient: Any, round: Any) -> Any:
        return list(self.weights(round) * gradient)


@fet.aggregator
class Wide:
    """Sum and weighted sum side by side."""

    def width(self, parties: int, hidden: int) -> int:
        return 2 * hidden

    def forward(self, parts: Any, round: Any) -> Any:
        weighted = sum((party + 1) * part for party, part in zip(round.active, parts))
        return np.concatenate([np.sum(parts, axis=0), weighted], axis=2)

    def backward(self, gradient: Any, round: Any) -> Any:
        plain, weighted = np.split(gradient, 2, axis=2)
        return [plain + (party + 1) * weighted for party in round.active]


@fet.aggregator
class SecureMean:
    """Mean that sees only the sum, as `secure-average`."""

    sees = "sum"

    def forward(self, total: Any, round: Any) -> Any:
        return total / np.float32(len(round.active))

    def backward(self, gradient: Any, round: Any) -> Any:
        return gradient / np.float32(len(round.active))


@fet.aggregator
class RevealingSum(SecureMean):
    """Asks for similarities next to a sum."""

    similarities = True


@fet.aggregator
class Slow(Mean):
    """Holds the interpreter's lock in short pieces for a while, as a long loop in Python does."""

    def forward(self, parts: Any, round: Any) -> Any:
        end = time.monotonic() + 0.01
        while time.monotonic() < end:
            sum(range(1000))
        return super().forward(parts, round)


@fet.aggregator
class Faulty(Mean):
    """A mean with one fault."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        if fault == "sees":
            self.sees = "everything"
        if fault == "method":
            self.forward = None  # type: ignore[method-assign, assignment]

    def width(self, parties: int, hidden: int) -> Any:
        return 0 if self.fault == "width" else hidden

    def forward(self, parts: Any, round: Any) -> Any:
        memory = super().forward(parts, round)
        # A round of training, not of the tests before it.
        in_training = round.shapes[0][1:] != (4, 5)
        faults: dict[str, Any] = {
            "median": lambda: np.median(parts, axis=0),
            "shape": lambda: memory[:, :, 1:],
            "rows": lambda: memory + memory.mean(axis=0, keepdims=True),
            "random": lambda: memory * np.float32(np.random.default_rng().uniform(1, 2)),
            "late": lambda: {}["no memory today"] if in_training else memory,
        }
        return faults.get(self.fault, lambda: memory)()

    def backward(self, gradient: Any, round: Any) -> Any:
        gradients = super().backward(gradient, round)
        faults: dict[str, Any] = {
            "gradient": lambda: [2 * one for one in gradients],
            "count": lambda: gradients[1:],
            "large": lambda: [-one for one in gradients] if len(gradient) > 20 else gradients,
        }
        return faults.get(self.fault, lambda: gradients)()


@fet.aggregator
class Ordered(Mean):
    """Breaks a law: the memory depends on the order of parties."""

    def forward(self, parts: Any, round: Any) -> Any:
        return sum((place + 1) * part for place, part in enumerate(parts))

    def backward(self, gradient: Any, round: Any) -> Any:
        return [(place + 1) * gradient for place in range(len(round.active))]


@fet.aggregator
class Few(Mean):
    """The gradient is wrong if a party is missing."""

    def backward(self, gradient: Any, round: Any) -> Any:
        return [gradient / np.float32(round.parties)] * len(round.active)


@fet.aggregator
class Drifting(Mean):
    """Breaks a law by a little: each memory differs from the one before."""

    def __init__(self) -> None:
        self.calls = 0

    def forward(self, parts: Any, round: Any) -> Any:
        self.calls += 1
        return super().forward(parts, round) * np.float32(1 + 1e-5 * self.calls)


@fet.aggregator
class Bent(Mean):
    """Breaks a law by a little: the memory is not quite linear."""

    def forward(self, parts: Any, round: Any) -> Any:
        memory = super().forward(parts, round)
        return memory + np.float32(2e-5) * memory**2


try:
    import torch
except ImportError:
    pass
else:

    @fet.aggregator
    class RootSum(torch.nn.Module):
        """Sum divided by the root of the number of parties."""

        def __init__(self, power: float = 0.5) -> None:
            super().__init__()
            self.power = power

        def forward(self, parts: Any, round: Any) -> Any:
            return torch.stack(parts).sum(dim=0) / len(parts) ** self.power

    @fet.aggregator
    class TorchNear(torch.nn.Module):
        """Mean with the weights of `similarity-weighted`."""

        similarities = True

        def forward(self, parts: Any, round: Any) -> Any:
            weights = torch.softmax(torch.stack(round.similarities), dim=0)
            return (weights[..., None] * torch.stack(parts)).sum(dim=0)

    @fet.aggregator
    class Trained(torch.nn.Module):
        """Has parameters, which no optimiser would change."""

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, parts: Any, round: Any) -> Any:
            return self.weight * torch.stack(parts).sum(dim=0)
