"""The digits network: a small residual CNN from 28x28 grey images to ten probabilities."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

SIDE = 28


def border_mean(side: int) -> nn.Conv2d:
    """A fixed convolution that turns an image of `side` x `side` into the mean of its outermost pixels."""
    weight = torch.ones(1, 1, side, side)
    weight[..., 1:-1, 1:-1] = 0
    mean = nn.Conv2d(1, 1, side, bias=False)
    mean.weight = nn.Parameter(weight / weight.sum(), requires_grad=False)
    return mean


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with a shortcut around them.

    Batch norm follows the activation. That trains as well as the usual order here, and keeps each norm an
    operator of its own in the exported graph instead of melting into the convolution before it.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu1 = nn.ReLU()
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.norm2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.conv2(self.norm1(self.relu1(self.conv1(x))))
        return self.norm2(self.relu2(inner + x))


class Unit(nn.Module):
    """A 3x3 convolution, activation and norm that change the number of channels."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.relu = nn.ReLU()
        self.norm = nn.BatchNorm2d(channels_out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.relu(self.conv(x)))


class DigitsNet(nn.Module):
    """Images (n, 1, 28, 28) of values 0 to 1, to probabilities (n, 10).

    The first step is the distance of each pixel from the ground, the mean along the image's border. It is the
    same for a picture and its negative, so that dark ink on light paper and light ink on a dark ground are one
    to all that follows.
    """

    def __init__(self, widths: tuple[int, int, int] = (16, 32, 64)) -> None:
        super().__init__()
        first, second, third = widths
        self.ground = border_mean(SIDE)
        self.stem = Unit(1, first)
        self.pool1 = nn.MaxPool2d(2)
        self.widen1 = Unit(first, second)
        self.block1 = ResidualBlock(second)
        self.pool2 = nn.MaxPool2d(2)
        self.widen2 = Unit(second, third)
        self.block2 = ResidualBlock(third)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(third, 10)
        self.softmax = nn.Softmax(dim=1)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """Ten numbers per image whose softmax is the response; the loss of training is taken here."""
        contrast = (x - self.ground(x)).abs()
        x = self.block1(self.widen1(self.pool1(self.stem(contrast))))
        x = self.block2(self.widen2(self.pool2(x)))
        return self.head(self.dropout(torch.flatten(self.average(x), 1)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.softmax(self.scores(x))
