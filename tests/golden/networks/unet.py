"""U-Net (Ronneberger et al., 2015) with padded convolutions, so that the output has the input's size."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from .common import ConvNorm


def double(channels_in: int, channels_out: int) -> nn.Sequential:
    """Two 3x3 units."""
    return nn.Sequential(ConvNorm(channels_in, channels_out), ConvNorm(channels_out, channels_out))


class Up(nn.Module):
    """Double the size, join with the encoder's features of that size, and mix."""

    def __init__(self, channels_in: int, channels_out: int, bilinear: bool) -> None:
        super().__init__()
        self.up: nn.Module = (
            nn.Sequential(
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True),
                nn.Conv2d(channels_in, channels_out, 1),
            )
            if bilinear
            else nn.ConvTranspose2d(channels_in, channels_out, 2, stride=2)
        )
        self.mix = double(2 * channels_out, channels_out)

    def forward(self, x: torch.Tensor, skipped: torch.Tensor) -> torch.Tensor:
        return self.mix(torch.cat((skipped, self.up(x)), dim=1))


class UNet(nn.Module):
    """Images (n, 3, h, w), h and w multiples of 2**depth, to a mask of probabilities (n, classes, h, w).

    `base` is the channel count of the first level and doubles downwards. `bilinear` enlarges by interpolation
    instead of by a transposed convolution. One class ends in a sigmoid, more of them in a softmax.
    """

    def __init__(self, base: int = 64, classes: int = 1, depth: int = 4, bilinear: bool = False) -> None:
        super().__init__()
        widths = [base << level for level in range(depth + 1)]
        self.first = double(3, base)
        self.pool = nn.MaxPool2d(2)
        self.downs = nn.ModuleList(double(narrow, wide) for narrow, wide in pairwise(widths))
        self.ups = nn.ModuleList(
            Up(wide, narrow, bilinear) for narrow, wide in reversed(list(pairwise(widths)))
        )
        self.head = nn.Conv2d(base, classes, 1)
        self.mask: nn.Module = nn.Sigmoid() if classes == 1 else nn.Softmax(dim=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [self.first(x)]
        for down in self.downs:
            features.append(down(self.pool(features[-1])))
        x = features.pop()
        for up in self.ups:
            x = up(x, features.pop())
        return self.mask(self.head(x))
