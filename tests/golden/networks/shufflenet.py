"""ShuffleNetV2 (Ma et al., 2018): halves of the channels, interleaved after each unit."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from .common import ConvNorm


def shuffled(x: torch.Tensor) -> torch.Tensor:
    """Deal the channels of two halves out alternately."""
    batch, channels, height, width = x.shape
    return x.view(batch, 2, channels // 2, height, width).transpose(1, 2).reshape(batch, -1, height, width)


class Unit(nn.Module):
    """One half of the channels goes on as it is; a unit that skips pixels filters all of them in two branches."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        half = channels_out // 2
        self.is_split = stride == 1
        first = half if self.is_split else channels_in
        if not self.is_split:
            self.left = nn.Sequential(
                ConvNorm(first, first, 3, stride, groups=first, activation=None), ConvNorm(first, half, 1)
            )
        self.right = nn.Sequential(
            ConvNorm(first, half, 1),
            ConvNorm(half, half, 3, stride, groups=half, activation=None),
            ConvNorm(half, half, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Filter (batch, channels, height, width)."""
        if self.is_split:
            kept, rest = x.chunk(2, 1)
            return shuffled(torch.cat((kept, self.right(rest)), 1))
        return shuffled(torch.cat((self.left(x), self.right(x)), 1))


class ShuffleNetV2(nn.Module):
    """ShuffleNetV2 with the channels of its stages as given."""

    def __init__(self, channels: tuple[int, ...] = (24, 116, 232, 464, 1024), classes: int = 1000) -> None:
        super().__init__()
        first, *stages, last = channels
        parts: list[nn.Module] = [ConvNorm(3, first, 3, 2), nn.MaxPool2d(3, 2, 1)]
        for wanted, units in zip(stages, (4, 8, 4), strict=True):
            for place in range(units):
                parts.append(Unit(first, wanted, 1 if place else 2))
                first = wanted
        self.features = nn.Sequential(*parts, ConvNorm(first, last, 1))
        self.classifier = nn.Linear(last, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Classify (batch, 3, height, width)."""
        return self.classifier(self.features(image).mean((2, 3)))
