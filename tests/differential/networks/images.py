"""Image networks beside those of the golden data: EfficientNet-Lite0, ShuffleNetV2 and DenseNet, compactly."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import torch
from torch import nn

from tests.golden.networks.common import ConvNorm, divisible


class Inverted(nn.Module):
    """MBConv without squeeze and excitation: widen, filter each channel, narrow; with a shortcut where it fits."""

    def __init__(self, narrow: int, out: int, widen: int, kernel: int, stride: int) -> None:
        super().__init__()
        wide = narrow * widen
        parts = [] if widen == 1 else [ConvNorm(narrow, wide, 1, activation=nn.ReLU6)]
        parts.append(ConvNorm(wide, wide, kernel, stride, groups=wide, activation=nn.ReLU6))
        parts.append(ConvNorm(wide, out, 1, activation=None))
        self.body = nn.Sequential(*parts)
        self.is_residual = stride == 1 and narrow == out

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.is_residual else self.body(x)


class EfficientNetLite(nn.Module):
    """Images (n, 3, h, w) to logits, after Tan and Le's B0 (2019) as the Lite variant has it."""

    STAGES = (
        (1, 16, 1, 3, 1),
        (6, 24, 2, 3, 2),
        (6, 40, 2, 5, 2),
        (6, 80, 3, 3, 2),
        (6, 112, 3, 5, 1),
        (6, 192, 4, 5, 2),
    )
    """Widening, filters, blocks, kernel and stride of each stage."""

    def __init__(self, width: float = 1.0, classes: int = 100) -> None:
        super().__init__()
        channels = divisible(32 * width)
        blocks: list[nn.Module] = [ConvNorm(3, channels, 3, 2, activation=nn.ReLU6)]
        for widen, filters, repeats, kernel, stride in self.STAGES:
            out = divisible(filters * width)
            for place in range(repeats):
                blocks.append(Inverted(channels, out, widen, kernel, stride if place == 0 else 1))
                channels = out
        blocks.append(ConvNorm(channels, divisible(1280 * width), 1, activation=nn.ReLU6))
        self.features = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classify = nn.Linear(divisible(1280 * width), classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(torch.flatten(self.pool(self.features(x)), 1))


class Shuffle(nn.Module):
    """A unit of ShuffleNetV2 (Ma et al., 2018): two branches whose channels are interleaved."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        half = out // 2
        self.stride = stride
        taken = channels if stride > 1 else channels // 2
        self.right = nn.Sequential(
            ConvNorm(taken, half, 1),
            ConvNorm(half, half, 3, stride, groups=half, activation=None),
            ConvNorm(half, half, 1),
        )
        self.left: nn.Module = nn.Sequential()
        if stride > 1:
            depthwise = ConvNorm(channels, channels, 3, stride, groups=channels, activation=None)
            self.left = nn.Sequential(depthwise, ConvNorm(channels, half, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.stride > 1:
            joined = torch.cat((self.left(x), self.right(x)), dim=1)
        else:
            left, right = x.chunk(2, dim=1)
            joined = torch.cat((left, self.right(right)), dim=1)
        n, channels, height, width = joined.shape
        return (
            joined.view(n, 2, channels // 2, height, width)
            .transpose(1, 2)
            .reshape(n, channels, height, width)
        )


class ShuffleNet(nn.Module):
    """Images (n, 3, h, w) to logits."""

    def __init__(self, stages: tuple[int, ...] = (116, 232, 464), classes: int = 100) -> None:
        super().__init__()
        channels = 24
        blocks: list[nn.Module] = [ConvNorm(3, channels, 3, 2), nn.MaxPool2d(3, 2, 1)]
        for out, repeats in zip(stages, (3, 5, 3), strict=True):
            for place in range(repeats):
                blocks.append(Shuffle(channels, out, 2 if place == 0 else 1))
                channels = out
        self.features = nn.Sequential(*blocks, ConvNorm(channels, 512, 1))
        self.classify = nn.Linear(512, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(self.features(x).mean((2, 3)))


class Dense(nn.Module):
    """A layer of DenseNet (Huang et al., 2017): normalise, activate, convolve, and go on with all that was before."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat((x, self.body(x)), 1)


class DenseNet(nn.Module):
    """Images (n, 3, h, w) to logits."""

    def __init__(self, growth: int = 32, layers: tuple[int, ...] = (6, 12, 8, 6), classes: int = 100) -> None:
        super().__init__()
        channels = 2 * growth
        blocks: list[nn.Module] = [ConvNorm(3, channels, 7, 2), nn.MaxPool2d(3, 2, 1)]
        for place, count in enumerate(layers):
            for _ in range(count):
                blocks.append(Dense(channels, growth))
                channels += growth
            if place < len(layers) - 1:
                narrow = nn.Conv2d(channels, channels // 2, 1, bias=False)
                blocks += [nn.BatchNorm2d(channels), nn.ReLU(), narrow, nn.AvgPool2d(2)]
                channels //= 2
        self.features = nn.Sequential(*blocks, nn.BatchNorm2d(channels), nn.ReLU())
        self.classify = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classify(torch.flatten(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)), 1))
