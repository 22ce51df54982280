"""A convolutional network on sequences, as for sound or sensors: gates, skips, and classes for every place."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class SequenceNet(nn.Module):
    """Convolutions of (batch, channels, length) with reflected ends, a gate, pooling and the way back up."""

    def __init__(self, channels: int = 3, width: int = 10, classes: int = 5) -> None:
        super().__init__()
        self.first = nn.Sequential(
            *(nn.ReflectionPad1d((3, 2)), nn.Conv1d(channels, width, 6, bias=False)),
            *(nn.BatchNorm1d(width), nn.PReLU(width), nn.MaxPool1d(3, 2, 1)),
        )
        self.gated = nn.Sequential(nn.Conv1d(width, 2 * width, 3, padding=2, dilation=2), nn.GLU(1))
        self.depthwise = nn.Sequential(
            nn.ConstantPad1d((4, 0), 0.5), nn.Conv1d(width, width, 5, groups=width), nn.InstanceNorm1d(width)
        )
        self.down = nn.Sequential(nn.AvgPool1d(2), nn.Conv1d(width, 2 * width, 1), nn.SELU())
        self.up = nn.ConvTranspose1d(2 * width, width, 4, 2, 1)
        self.head = nn.Conv1d(width, classes, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logarithm of each class at every place, and vectors of length one for the whole."""
        x = self.first(x)
        x = x + self.depthwise(self.gated(x))
        below = self.down(x)
        x = functional.softplus(x + self.up(below))
        x = functional.interpolate(self.head(x), scale_factor=2.0, mode="linear")
        whole = torch.cat((below.mean(2), below.amax(2), below.std(2)), 1)
        return x.log_softmax(1), functional.normalize(whole)
