"""Layers that trade channels for pixels, pixels for channels, and channels among themselves."""

import math
from collections.abc import Sequence

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.windows import require_positive
from engine.layers.view_rules import view_layer


def _planes(shape: Sequence[int], factor: int, argument: str) -> tuple[tuple[int, ...], int, int, int]:
    """Return (*leading, channels, height, width) of an input, the leading axes together."""
    require_positive(argument, factor)
    if len(shape) < 3:
        raise ArgumentError("input", f"has {len(shape)} axes", "at least 3: (…, channels, height, width)")
    *leading, channels, height, width = shape
    return tuple(leading), channels, height, width


def _shuffled(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    leading, channels, height, width = _planes(shape, factor, "upscale_factor")
    if channels % factor**2:
        raise ArgumentError("input", f"has {channels} channels", f"a multiple of {factor**2}")
    return (*leading, channels // factor**2, height * factor, width * factor)


@view_layer("F.pixel_shuffle", "nn.PixelShuffle")
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Turn every `upscale_factor`² channels into one with as many pixels more."""
    shape = _shuffled(input.shape, upscale_factor)
    channels, (height, width) = shape[-3], input.shape[-2:]
    split = (-1, channels, upscale_factor, upscale_factor, height, width)
    if not input.size:
        return input.reshape(shape)
    return input.reshape(split).transpose(0, 1, 4, 2, 5, 3).reshape(shape)


def _unshuffled(shape: Sequence[int], factor: int) -> tuple[int, ...]:
    leading, channels, height, width = _planes(shape, factor, "downscale_factor")
    if height % factor or width % factor:
        problem = f"is {height} high and {width} wide"
        raise ArgumentError("input", problem, f"multiples of {factor}")
    return (*leading, channels * factor**2, height // factor, width // factor)


@view_layer("F.pixel_unshuffle", "nn.PixelUnshuffle")
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Turn every channel into `downscale_factor`² with as many pixels less."""
    shape = _unshuffled(input.shape, downscale_factor)
    channels, (height, width) = input.shape[-3], shape[-2:]
    split = (-1, channels, height, downscale_factor, width, downscale_factor)
    if not input.size:
        return input.reshape(shape)
    return input.reshape(split).transpose(0, 1, 3, 5, 2, 4).reshape(shape)


@view_layer("nn.ChannelShuffle")
def channel_shuffle(input: Array, groups: int) -> Array:
    """Deal the channels of (batch, channels, *spatial) out: first of each group, second of each group, …."""
    require_positive("groups", groups)
    if input.ndim < 3:
        raise ArgumentError("input", f"has {input.ndim} axes", "at least 3: (batch, channels, *spatial)")
    batch, channels = input.shape[:2]
    if channels % groups:
        raise ArgumentError("input", f"has {channels} channels", f"a multiple of the {groups} groups")
    split = (batch, groups, channels // groups, math.prod(input.shape[2:]))
    return input.reshape(split).swapaxes(1, 2).reshape(input.shape)
