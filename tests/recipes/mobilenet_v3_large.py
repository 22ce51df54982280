"""MobileNetV3-Large (Howard et al., 2019): the blocks of the small one, in another table."""

# mypy: disallow-subclassing-any=False

import torch
from torch import nn

from tests.golden.networks.common import ConvNorm
from tests.golden.networks.mobilenet_v3 import EPS, Bottleneck

# kernel, expanded channels, channels out, squeeze-and-excitation, activation, stride: table 1 of the paper
BLOCKS: tuple[tuple[int, int, int, bool, type[nn.Module], int], ...] = (
    (3, 16, 16, False, nn.ReLU, 1),
    (3, 64, 24, False, nn.ReLU, 2),
    (3, 72, 24, False, nn.ReLU, 1),
    (5, 72, 40, True, nn.ReLU, 2),
    (5, 120, 40, True, nn.ReLU, 1),
    (5, 120, 40, True, nn.ReLU, 1),
    (3, 240, 80, False, nn.Hardswish, 2),
    (3, 200, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 184, 80, False, nn.Hardswish, 1),
    (3, 480, 112, True, nn.Hardswish, 1),
    (3, 672, 112, True, nn.Hardswish, 1),
    (5, 672, 160, True, nn.Hardswish, 2),
    (5, 960, 160, True, nn.Hardswish, 1),
    (5, 960, 160, True, nn.Hardswish, 1),
)
_FEATURES, _HIDDEN = 960, 1280


class MobileNetV3Large(nn.Module):
    """Images (n, 3, h, w) to logits (n, classes)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        parts: list[nn.Module] = [ConvNorm(3, 16, stride=2, eps=EPS, activation=nn.Hardswish)]
        channels = 16
        for kernel, wide, out, excitation, activation, stride in BLOCKS:
            parts.append(Bottleneck(channels, wide, out, kernel, stride, excitation, activation))
            channels = out
        parts.append(ConvNorm(channels, _FEATURES, kernel=1, eps=EPS, activation=nn.Hardswish))
        self.features = nn.Sequential(*parts)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(_FEATURES, _HIDDEN), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(_HIDDEN, classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.average(self.features(x)), 1))
