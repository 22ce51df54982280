"""EfficientNet-Lite (Google, 2020): inverted residuals with ReLU6, no gates, and the paddings of TensorFlow."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from .common import ConvNorm, divisible

# expansion, channels, repeats, stride of the first, kernel
STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class Block(nn.Module):
    """Widen, filter depthwise, narrow; where pixels are skipped zeros come to the right and below only."""

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = channels_in * expansion
        parts: list[nn.Module] = []
        if expansion > 1:
            parts.append(ConvNorm(channels_in, hidden, 1, activation=nn.ReLU6))
        if stride > 1:
            before, after = (kernel - 2) // 2, (kernel - 1) // 2
            parts.append(nn.ZeroPad2d((before, after, before, after)))
        padding = 0 if stride > 1 else kernel // 2
        parts.append(
            ConvNorm(hidden, hidden, kernel, stride, groups=hidden, padding=padding, activation=nn.ReLU6)
        )
        parts.append(ConvNorm(hidden, channels_out, 1, activation=None))
        self.parts = nn.Sequential(*parts)
        self.is_residual = stride == 1 and channels_in == channels_out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Filter (batch, channels, height, width)."""
        return x + self.parts(x) if self.is_residual else self.parts(x)


class EfficientNetLite(nn.Module):
    """EfficientNet-Lite0 with channels times `width`."""

    def __init__(
        self, width: float = 1.0, divisor: int = 8, features: int = 1280, classes: int = 1000
    ) -> None:
        super().__init__()
        channels = divisible(32 * width, divisor)
        parts: list[nn.Module] = [nn.ZeroPad2d((0, 1, 0, 1))]
        parts.append(ConvNorm(3, channels, 3, 2, padding=0, activation=nn.ReLU6))
        for expansion, wanted, repeats, stride, kernel in STAGES:
            channels_out = divisible(wanted * width, divisor)
            for place in range(repeats):
                parts.append(Block(channels, channels_out, kernel, 1 if place else stride, expansion))
                channels = channels_out
        parts.append(ConvNorm(channels, features, 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*parts)
        self.classifier = nn.Linear(features, classes)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Classify (batch, 3, height, width)."""
        return self.classifier(self.features(image).mean((2, 3)))
