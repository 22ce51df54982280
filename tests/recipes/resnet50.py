"""ResNet50 (He et al., "Deep Residual Learning for Image Recognition", 2015); 3x3 convolutions have the stride."""

# mypy: disallow-subclassing-any=False

import torch
from torch import nn

from tests.golden.networks.common import ConvNorm
from tests.golden.networks.resnet import ResNet

_EXPANSION = 4


class Bottleneck(nn.Module):
    """Narrow by a 1x1 convolution, filter by a 3x3 one, widen by a 1x1 one; beside a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        wide = _EXPANSION * channels
        self.body = nn.Sequential(
            ConvNorm(channels_in, channels, kernel=1),
            ConvNorm(channels, channels, stride=stride),
            ConvNorm(channels, wide, kernel=1, activation=None),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != wide:
            self.shortcut = ConvNorm(channels_in, wide, kernel=1, stride=stride, activation=None)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.body(x) + self.shortcut(x))


class ResNet50(ResNet):
    """A ResNet of 16 bottlenecks; `width` is the channel count of the first stage."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__(Bottleneck, _EXPANSION, (3, 4, 6, 3), width, classes)
