"""ResNets (He et al., "Deep Residual Learning for Image Recognition", 2015), ResNet18 among them, any width."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from .common import ConvNorm


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected by a 1x1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = ConvNorm(channels_in, channels_out, stride=stride)
        self.conv2 = ConvNorm(channels_out, channels_out, activation=None)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = ConvNorm(channels_in, channels_out, kernel=1, stride=stride, activation=None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.conv2(self.conv1(x)) + self.shortcut(x))


class ResNet(nn.Module):
    """Images (n, 3, h, w) to logits (n, classes), by four stages of blocks.

    Args:
        block: makes a block of the channels that come in, those of the stage, and the stride.
        expansion: channels of a block's output for each of its stage's.
        repeats: blocks of each stage.
        width: channels of the first stage; each later one has twice as many.
        classes: the logits.
    """

    def __init__(
        self,
        block: Callable[[int, int, int], nn.Module],
        expansion: int,
        repeats: Sequence[int],
        width: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.stem = ConvNorm(3, width, kernel=7, stride=2)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        stages: list[nn.Module] = []
        channels = width
        for stage, count in enumerate(repeats):
            blocks = []
            for place in range(count):
                blocks.append(block(channels, width << stage, 2 if stage and not place else 1))
                channels = expansion * (width << stage)
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.average = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.pool(self.stem(x)))
        return self.head(torch.flatten(self.average(x), 1))


class ResNet18(ResNet):
    """A ResNet of eight basic blocks; `width` is the channel count of the first stage."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__(BasicBlock, 1, (2, 2, 2, 2), width, classes)
