"""Vision Transformer (Dosovitskiy et al., 2020), pre-norm, with a class token."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn


class Attention(nn.Module):
    """Multi-head self-attention, written out step by step."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (features // heads) ** -0.5
        self.qkv = nn.Linear(features, 3 * features)
        self.project = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, tokens, features = x.shape
        qkv = self.qkv(x).reshape(n, tokens, 3, self.heads, features // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        weights = torch.softmax(query @ key.transpose(-2, -1) * self.scale, dim=-1)
        return self.project((weights @ value).transpose(1, 2).reshape(n, tokens, features))


class TorchAttention(nn.Module):
    """The same through `nn.MultiheadAttention`, which the exporter keeps as one operator."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(features, heads, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class Block(nn.Module):
    """Attention and a two-layer perceptron, each behind a layer norm and beside a shortcut."""

    def __init__(self, features: int, attention: nn.Module, expansion: int = 4) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(features, eps=1e-6)
        self.attention = attention
        self.norm2 = nn.LayerNorm(features, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(features, expansion * features), nn.GELU(), nn.Linear(expansion * features, features)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Images (n, 3, size, size) to logits (n, classes); the size is fixed by the position embedding."""

    def __init__(
        self,
        size: int = 224,
        patch: int = 16,
        features: int = 192,
        depth: int = 12,
        heads: int = 3,
        classes: int = 1000,
        fused_attention: bool = False,
    ) -> None:
        super().__init__()
        attention = TorchAttention if fused_attention else Attention
        self.patches = nn.Conv2d(3, features, patch, stride=patch)
        self.token = nn.Parameter(0.5 * torch.randn(1, 1, features))
        self.position = nn.Parameter(0.1 * torch.randn(1, (size // patch) ** 2 + 1, features))
        self.blocks = nn.Sequential(*(Block(features, attention(features, heads)) for _ in range(depth)))
        self.norm = nn.LayerNorm(features, eps=1e-6)
        self.head = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])
