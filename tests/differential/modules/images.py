"""Layers of random modules over images (n, channels, rows, columns), of which only the channels are known."""

from collections.abc import Callable
from functools import partial
from random import Random

import torch
from torch import nn
from torch.nn import functional

from tests.differential.modules.layers import Apply, Join
from tests.differential.modules.pointwise import activation

Make = Callable[[Random, int], nn.Module]


def _divisor(random: Random, number: int) -> int:
    return random.choice([divisor for divisor in range(1, number + 1) if number % divisor == 0])


def convolution(random: Random, channels: int) -> nn.Module:
    groups = random.choice((1, 1, 1, channels, _divisor(random, channels)))
    kernel = random.choice(((1, 1), (3, 3), (3, 3), (5, 5), (1, 3), (2, 4), (7, 1), (4, 4)))
    stride = random.choice((1, 1, 1, 2, 3, (2, 1)))
    dilation = random.choice((1, 1, 1, 2, (1, 3)))
    padding = random.choice(((0, 0), (kernel[0] // 2, kernel[1] // 2), (1, 2), (3, 1)))
    out = groups * random.randint(1, max(1, 40 // groups))
    mode = random.choice(("zeros", "zeros", "zeros", "reflect", "replicate", "circular"))
    return nn.Conv2d(
        channels, out, kernel, stride, padding, dilation, groups, random.random() < 0.7, padding_mode=mode
    )


def same(random: Random, channels: int) -> nn.Module:
    """Convolutions that keep the shape."""
    kernel = random.choice((1, 3, 3, 5))
    groups = random.choice((1, 1, channels, _divisor(random, channels)))
    return nn.Conv2d(channels, channels, kernel, padding="same", groups=groups)


def transposed(random: Random, channels: int) -> nn.Module:
    groups = random.choice((1, 1, channels, _divisor(random, channels)))
    stride = random.choice((1, 2, 2, 3))
    return nn.ConvTranspose2d(
        channels,
        groups * random.randint(1, max(1, 24 // groups)),
        random.choice((1, 2, 3, 4, (3, 2))),
        stride,
        random.choice((0, 0, 1)),
        random.choice((0, stride - 1)),
        groups,
        random.random() < 0.7,
        random.choice((1, 1, 2)),
    )


def norm(random: Random, channels: int) -> nn.Module:
    kind = random.randrange(6)
    if kind < 4:
        layer = nn.BatchNorm2d(channels, affine=random.random() < 0.9)
        nn.init.uniform_(layer.running_mean, -0.5, 0.5)
        nn.init.uniform_(layer.running_var, 0.3, 2)
        return layer
    if kind == 4:
        return nn.GroupNorm(_divisor(random, channels), channels)
    return nn.InstanceNorm2d(channels, affine=random.random() < 0.5)


def pooling(random: Random, channels: int) -> nn.Module:
    kernel = random.choice((2, 3, 3, 5, (2, 3)))
    stride = random.choice((1, 2, 2, 3, (2, 1)))
    padding = random.choice((0, 1))
    ceil = random.random() < 0.4
    kind = random.randrange(5)
    if kind < 2:
        return nn.MaxPool2d(kernel, stride, padding, random.choice((1, 1, 2)), ceil_mode=ceil)
    if kind < 4:
        divisor = random.choice((None, None, None, 3))
        return nn.AvgPool2d(kernel, stride, padding, ceil, random.random() < 0.5, divisor)
    return nn.LPPool2d(2, kernel, stride, ceil)


def adaptive(random: Random, channels: int) -> nn.Module:
    size = random.choice((1, 2, 3, 7, (3, 5), (None, 2)))
    return random.choice((nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d))(size)


def resizing(random: Random, channels: int) -> nn.Module:
    kind = random.randrange(6)
    if kind == 0:
        return nn.Upsample(scale_factor=random.choice((2, 3)), mode="nearest")
    if kind == 1:
        return nn.Upsample(scale_factor=2, mode="bilinear", align_corners=random.random() < 0.5)
    if kind == 2:
        return nn.Upsample(size=(random.randint(5, 40), random.randint(5, 40)), mode="bilinear")
    if kind == 3:
        return nn.Upsample(scale_factor=2, mode="bicubic", align_corners=random.random() < 0.5)
    if kind == 4:
        return nn.PixelShuffle(2)
    return nn.PixelUnshuffle(2)


def padding(random: Random, channels: int) -> nn.Module:
    sizes = tuple(random.randint(0, 3) for _ in range(4))
    layers = (nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d, partial(nn.ConstantPad2d, value=0.5))
    return random.choice(layers)(sizes)


# Slices along dynamic axes are left out: the exporter drops them (docs/reference/operators.md).
_ARRANGING = (
    Apply("x[:, 1:]", lambda x: x[:, 1:]),
    Apply("x[:, ::2]", lambda x: x[:, ::2]),
    Apply("swap rows and columns", lambda x: x.permute(0, 1, 3, 2)),
    Apply("flip", lambda x: x.flip(3)),
    Apply("roll", lambda x: torch.roll(x, (1, 2), (2, 3))),
    Apply("halves in turn", lambda x: torch.cat(x.chunk(2, 1)[::-1], 1)),
    Apply("split in three", lambda x: torch.cat([y.tanh() for y in x.split(3, 1)], 1)),
    Apply("softmax of channels", lambda x: x.softmax(1)),
    Apply("log softmax of columns", lambda x: x.log_softmax(3)),
    Apply("x - mean", lambda x: x - x.mean((2, 3), keepdim=True)),
    Apply("x / sum", lambda x: x / (x.abs().sum(1, keepdim=True) + 1)),
    Apply("x - max", lambda x: x - x.amax((1, 2), keepdim=True)),
    Apply(
        "x * mean and max",
        lambda x: x * torch.cat((x.mean(1, True), x.amax(1, True)), 1).sigmoid().mean(1, True),
    ),
    Apply("normalize", lambda x: functional.normalize(x, dim=1)),
    Apply("stacked", lambda x: torch.stack((x, -x), 2).flatten(1, 2)),
)


def arranging(random: Random, channels: int) -> nn.Module:
    if random.random() < 0.25 and channels % 2 == 0:
        half = channels // 2
        return Apply(
            "channel shuffle",
            lambda x: x.reshape(x.shape[0], 2, half, x.shape[2], x.shape[3]).transpose(1, 2).flatten(1, 2),
        )
    return random.choice(_ARRANGING)


def glu(random: Random, channels: int) -> nn.Module:
    return random.choice((nn.GLU(1), Apply("gated", lambda x: x.chunk(2, 1)[0] * x.chunk(2, 1)[1].sigmoid())))


def _body(random: Random, channels: int) -> nn.Module:
    layers = [random.choice((same, norm))(random, channels), activation(random)]
    return nn.Sequential(*layers, *([same(random, channels)] if random.random() < 0.5 else []))


def joined(random: Random, channels: int) -> nn.Module:
    kind = random.randrange(5)
    if kind == 0:
        return Join(Apply("x + y", lambda x, y: x + y), _body(random, channels))
    if kind == 1:
        return Join(Apply("cat (x, y)", lambda x, y: torch.cat((x, y), 1)), _body(random, channels))
    if kind == 2:
        both = Apply("cat (y, z)", lambda x, y, z: torch.cat((y, z), 1))
        return Join(both, _body(random, channels), _body(random, channels))
    if kind == 3:
        narrow = max(1, channels // 2)
        gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, narrow, 1),
            activation(random),
            nn.Conv2d(narrow, channels, 1),
            random.choice((nn.Sigmoid, nn.Hardsigmoid))(),
        )
        return Join(Apply("x * y", lambda x, y: x * y), gate)
    both = Apply("relu(y - z)", lambda x, y, z: torch.relu(y - z))
    return Join(both, _body(random, channels), _body(random, channels))


def ending(random: Random, channels: int) -> nn.Module:
    """To sequences (n, steps, channels) or to vectors (n, channels)."""
    return random.choice(
        (
            Apply("flatten(2), turned", lambda x: x.flatten(2).transpose(1, 2)),
            Apply("mean of rows", lambda x: x.mean(2).permute(0, 2, 1)),
            Apply("max of columns", lambda x: x.amax(3).transpose(1, 2)),
            nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten()),
            Apply("mean", lambda x: x.mean((2, 3))),
            Apply("sum", lambda x: x.sum((-1, -2))),
        )
    )


def point(random: Random, channels: int) -> nn.Module:
    """A convolution of single pixels: never computed by Winograd's algorithm."""
    return nn.Conv2d(channels, random.randint(1, 40), 1)


ALL: tuple[tuple[Make, int], ...] = (
    (convolution, 6),
    (same, 2),
    (transposed, 1),
    (norm, 3),
    (lambda random, _: activation(random), 6),
    (pooling, 2),
    (adaptive, 1),
    (resizing, 2),
    (padding, 1),
    (arranging, 3),
    (glu, 1),
    (joined, 3),
    (ending, 1),
)
"""What may follow, and how often."""

LOCAL: tuple[tuple[Make, int], ...] = (
    (point, 2),
    (lambda random, _: activation(random), 6),
    (pooling, 3),
    (padding, 1),
    (ending, 1),
)
"""Layers through which an infinity or NaN goes where PyTorch lets it go."""
