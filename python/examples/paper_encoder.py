"""The paper's encoder (section 4 and figure 2) as a module of PyTorch.

It has the parameters of the program's encoder `transformer`, and computes the same representation.
"""

import torch
from torch import Tensor, nn

import fet


def perceptron(inputs: int, outputs: int, hidden: int, dropout: float = 0.0) -> nn.Sequential:
    """Make two affine maps with GELU and dropout between them."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, outputs))


class FourierEncoding(nn.Module):
    """Positional encoding of keys, with learned frequencies (section 4.2)."""

    def __init__(self, keys: int, hidden: int, frequency_std: float) -> None:
        super().__init__()
        self.frequencies = nn.Linear(keys, hidden // 2, bias=False)
        nn.init.normal_(self.frequencies.weight, std=frequency_std)
        self.network = perceptron(hidden, hidden, 2 * hidden)

    def forward(self, keys: Tensor) -> Tensor:
        angles = self.frequencies(keys)
        waves = torch.cat([angles.cos(), angles.sin()], dim=-1)
        return self.network(waves / waves.shape[-1] ** 0.5)


@fet.encoder
class PaperEncoder(nn.Module):
    """Embedding, dynamic mask (section 4.3) and blocks of self-attention over the neighbours.

    `neighbours` must equal `linker.neighbours`.
    """

    def __init__(
        self, keys: int, features: int, hidden: int, neighbours: int = 20, heads: int = 4, blocks: int = 1,
        dropout: float = 0.3, frequency_std: float = 20.0, positional_encoding: bool = True, dynamic_mask: bool = True,
        shared_norm: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.embedding = nn.Linear(keys + features, hidden)
        self.position = FourierEncoding(keys, hidden, frequency_std) if positional_encoding else None
        listed = keys * neighbours
        self.mask = perceptron(listed, neighbours, 2 * listed) if dynamic_mask else None
        attention = [nn.MultiheadAttention(hidden, heads, dropout, batch_first=True) for _ in range(blocks)]
        self.attention = nn.ModuleList(attention)
        self.feed_forward = nn.ModuleList(perceptron(hidden, hidden, 2 * hidden, dropout) for _ in range(blocks))
        norms = 1 if shared_norm else blocks
        self.attention_norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(norms))
        self.feed_forward_norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(norms))
        self.dropout = nn.Dropout(dropout)

    def forward(self, keys: Tensor, features: Tensor) -> Tensor:
        x = self.embedding(torch.cat([keys, features], dim=2))
        if self.position is not None:
            x = x + self.position(keys)
        # PyTorch adds a mask of numbers to the logits of each neighbour.
        mask = None if self.mask is None else self.mask(keys.flatten(1))
        for block, (attention, feed_forward) in enumerate(zip(self.attention, self.feed_forward)):
            norm = block % len(self.attention_norms)
            normed = self.attention_norms[norm](x)
            attended, _ = attention(normed, normed, normed, key_padding_mask=mask, need_weights=False)
            x = x + self.dropout(attended)
            x = x + feed_forward(self.feed_forward_norms[norm](x))
        return x
