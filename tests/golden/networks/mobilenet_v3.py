"""MobileNetV3 (Howard et al., 2019): inverted residuals, squeeze-and-excitation, hard swish; and the small one."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from .common import ConvNorm, divisible

Block = tuple[int, int, int, bool, type[nn.Module], int]
"""Kernel, expanded channels, channels out, squeeze-and-excitation, activation, stride."""

# table 2 of the paper
BLOCKS: tuple[Block, ...] = (
    (3, 16, 16, True, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 2),
    (3, 88, 24, False, nn.ReLU, 1),
    (5, 96, 40, True, nn.Hardswish, 2),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 240, 40, True, nn.Hardswish, 1),
    (5, 120, 48, True, nn.Hardswish, 1),
    (5, 144, 48, True, nn.Hardswish, 1),
    (5, 288, 96, True, nn.Hardswish, 2),
    (5, 576, 96, True, nn.Hardswish, 1),
    (5, 576, 96, True, nn.Hardswish, 1),
)
EPS = 1e-3


class SqueezeExcitation(nn.Module):
    """Scale each channel by a gate worked out from the channels' means."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.average = nn.AdaptiveAvgPool2d(1)
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.relu = nn.ReLU()
        self.excite = nn.Conv2d(squeezed, channels, 1)
        self.gate = nn.Hardsigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(self.excite(self.relu(self.squeeze(self.average(x)))))


class Bottleneck(nn.Module):
    """Widen, filter depthwise, gate, narrow; add the input where shapes agree."""

    def __init__(
        self,
        channels_in: int,
        hidden: int,
        channels_out: int,
        kernel: int,
        stride: int,
        excitation: bool,
        activation: type[nn.Module],
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        if hidden != channels_in:
            parts.append(ConvNorm(channels_in, hidden, kernel=1, eps=EPS, activation=activation))
        parts.append(ConvNorm(hidden, hidden, kernel, stride, groups=hidden, eps=EPS, activation=activation))
        if excitation:
            parts.append(SqueezeExcitation(hidden, divisible(hidden / 4)))
        parts.append(ConvNorm(hidden, channels_out, kernel=1, eps=EPS, activation=None))
        self.body = nn.Sequential(*parts)
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.shortcut else self.body(x)


class MobileNetV3(nn.Module):
    """Images (n, 3, h, w) to logits (n, classes).

    Args:
        blocks: a table of the paper.
        features: channels before the classifier.
        hidden: values between the two layers of the classifier.
        classes: the logits.
        scaled: gives the channels for those of the paper.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        features: int,
        hidden: int,
        classes: int,
        scaled: Callable[[int], int] = int,
    ) -> None:
        super().__init__()
        channels = scaled(16)
        parts: list[nn.Module] = [ConvNorm(3, channels, stride=2, eps=EPS, activation=nn.Hardswish)]
        for kernel, expanded, channels_out, excitation, activation, stride in blocks:
            wide, out = scaled(expanded), scaled(channels_out)
            parts.append(Bottleneck(channels, wide, out, kernel, stride, excitation, activation))
            channels = out
        parts.append(ConvNorm(channels, scaled(features), kernel=1, eps=EPS, activation=nn.Hardswish))
        self.features = nn.Sequential(*parts)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(scaled(features), scaled(hidden)),
            nn.Hardswish(),
            nn.Dropout(0.2),
            nn.Linear(scaled(hidden), classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.average(self.features(x)), 1))


class MobileNetV3Small(MobileNetV3):
    """The small one; `width` multiplies all channel counts."""

    def __init__(self, width: float = 1.0, classes: int = 1000, divisor: int = 8) -> None:
        super().__init__(BLOCKS, 576, 1024, classes, lambda channels: divisible(channels * width, divisor))
