"""Encoders for the tests of plug-ins, with and without PyTorch."""

from typing import Any

import numpy as np

import fet


@fet.encoder
class Affine:
    """Affine map of each neighbour, with its own backward pass."""

    def __init__(self, keys: int, features: int, hidden: int, seed: int, scale: float = 1.0) -> None:
        random = np.random.default_rng(seed)
        weights = random.normal(0, scale / (keys + features) ** 0.5, (keys + features, hidden))
        self.arrays = {"weights": weights.astype(np.float32), "bias": np.zeros(hidden, np.float32)}

    def parameters(self) -> dict[str, Any]:
        return self.arrays

    def forward(self, keys: Any, features: Any) -> Any:
        self.inputs = np.concatenate([keys, features], axis=2)
        return self.inputs @ self.arrays["weights"] + self.arrays["bias"]

    def backward(self, gradient: Any) -> dict[str, Any]:
        flat = gradient.reshape(-1, gradient.shape[2])
        inputs = self.inputs.reshape(len(flat), -1)
        return {"weights": inputs.T @ flat, "bias": flat.sum(axis=0)}


@fet.encoder
class Wrong(Affine):
    """Breaks the law: the gradient is too long."""

    def backward(self, gradient: Any) -> dict[str, Any]:
        return {name: 2 * values for name, values in super().backward(gradient).items()}


@fet.encoder
class Narrow(Affine):
    """Returns too few columns."""

    def forward(self, keys: Any, features: Any) -> Any:
        return super().forward(keys, features)[..., 1:]


@fet.encoder
class Late(Affine):
    """Fails in training, after the test before it."""

    calls = 0

    def backward(self, gradient: Any) -> dict[str, Any]:
        self.calls += 1
        if self.calls > 1:
            raise RuntimeError("no gradient today")
        return super().backward(gradient)


try:
    import torch
except ImportError:
    pass
else:
    from paper_encoder import PaperEncoder

    @fet.encoder
    class Perceptron(torch.nn.Module):
        """Perceptron of PyTorch with dropout."""

        def __init__(self, keys: int, features: int, hidden: int, width: int = 16) -> None:
            super().__init__()
            layers = [torch.nn.Linear(keys + features, width), torch.nn.Tanh(), torch.nn.Dropout(0.1)]
            self.network = torch.nn.Sequential(*layers, torch.nn.Linear(width, hidden))

        def forward(self, keys: Any, features: Any) -> Any:
            return self.network(torch.cat([keys, features], dim=2))

    @fet.encoder
    class Normed(torch.nn.Module):
        """Has running means."""

        def __init__(self, keys: int, features: int, hidden: int) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(keys + features)

    @fet.encoder
    class Started(PaperEncoder):
        """The paper's encoder, with initial parameters from a file."""

        def __init__(self, keys: int, features: int, hidden: int, parameters: str, **options: Any) -> None:
            super().__init__(keys, features, hidden, **options)
            self.load_state_dict(torch.load(parameters))
