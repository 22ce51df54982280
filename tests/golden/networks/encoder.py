"""Encoder of sentences (Devlin et al., 2018), post-norm, of the size of MiniLM-L6: from embedded tokens to a vector."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from .vit import Attention


class Layer(nn.Module):
    """Attention and a two-layer perceptron, each beside a shortcut and before a layer norm."""

    def __init__(self, features: int, heads: int, expansion: int = 4) -> None:
        super().__init__()
        self.attention = Attention(features, heads)
        self.norm1 = nn.LayerNorm(features, eps=1e-12)
        self.mlp = nn.Sequential(
            nn.Linear(features, expansion * features), nn.GELU(), nn.Linear(expansion * features, features)
        )
        self.norm2 = nn.LayerNorm(features, eps=1e-12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class Encoder(nn.Module):
    """Embedded tokens (n, tokens, features) to the means of their last states (n, features)."""

    def __init__(self, features: int = 384, depth: int = 6, heads: int = 12) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Layer(features, heads) for _ in range(depth)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).mean(1)
