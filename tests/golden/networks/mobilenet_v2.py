"""MobileNetV2 (Sandler et al., 2018): inverted residuals with linear bottlenecks."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from .common import ConvNorm, divisible

# expansion, channels, repeats, stride of the first: table 2 of the paper
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class InvertedResidual(nn.Module):
    """Widen by 1x1, filter depthwise, narrow by 1x1 without activation; add the input where shapes agree."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = channels_in * expansion
        parts: list[nn.Module] = []
        if expansion != 1:
            parts.append(ConvNorm(channels_in, hidden, kernel=1, activation=nn.ReLU6))
        parts += [
            ConvNorm(hidden, hidden, stride=stride, groups=hidden, activation=nn.ReLU6),
            ConvNorm(hidden, channels_out, kernel=1, activation=None),
        ]
        self.body = nn.Sequential(*parts)
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.shortcut else self.body(x)


class MobileNetV2(nn.Module):
    """Images (n, 3, h, w) to logits (n, classes).

    `width` multiplies the channels, which are rounded to multiples of `divisor`; `features` is the channel
    count before the classifier (the paper keeps 1280 for narrow nets).
    """

    def __init__(
        self, width: float = 1.0, classes: int = 1000, divisor: int = 8, features: int | None = None
    ) -> None:
        super().__init__()
        channels = divisible(32 * width, divisor)
        features = divisible(1280 * max(1.0, width), divisor) if features is None else features
        parts: list[nn.Module] = [ConvNorm(3, channels, stride=2, activation=nn.ReLU6)]
        for expansion, base, repeats, stride in STAGES:
            channels_out = divisible(base * width, divisor)
            for index in range(repeats):
                parts.append(InvertedResidual(channels, channels_out, stride if index == 0 else 1, expansion))
                channels = channels_out
        parts.append(ConvNorm(channels, features, kernel=1, activation=nn.ReLU6))
        self.features = nn.Sequential(*parts)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(features, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(torch.flatten(self.average(self.features(x)), 1)))
