"""Layers that trade channels for pixels, pixels for channels, and channels among themselves."""

import math
from collections.abc import Sequence

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.windows import require_positive
from engine.spec import TensorSpec, tensor_spec


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


def _infer_pixel_shuffle(input: TensorSpec, upscale_factor: int) -> TensorSpec:
    return input.with_shape(_shuffled(input.shape, upscale_factor))


@layer("F.pixel_shuffle", "nn.PixelShuffle", infer=_infer_pixel_shuffle)
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


def _infer_pixel_unshuffle(input: TensorSpec, downscale_factor: int) -> TensorSpec:
    return input.with_shape(_unshuffled(input.shape, downscale_factor))


@layer("F.pixel_unshuffle", "nn.PixelUnshuffle", infer=_infer_pixel_unshuffle)
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Turn every channel into `downscale_factor`² with as many pixels less."""
    shape = _unshuffled(input.shape, downscale_factor)
    channels, (height, width) = input.shape[-3], shape[-2:]
    split = (-1, channels, height, downscale_factor, width, downscale_factor)
    if not input.size:
        return input.reshape(shape)
    return input.reshape(split).transpose(0, 1, 3, 5, 2, 4).reshape(shape)


def _infer_channel_shuffle(input: TensorSpec, groups: int) -> TensorSpec:
    require_positive("groups", groups)
    if input.rank < 3:
        raise ArgumentError("input", f"has {input.rank} axes", "at least 3: (batch, channels, *spatial)")
    if input.shape[1] % groups:
        raise ArgumentError("input", f"has {input.shape[1]} channels", f"a multiple of the {groups} groups")
    return input


@layer("nn.ChannelShuffle", infer=_infer_channel_shuffle)
def channel_shuffle(input: Array, groups: int) -> Array:
    """Deal the channels of (batch, channels, *spatial) out: first of each group, second of each group, …."""
    _infer_channel_shuffle(tensor_spec(input), groups)
    batch, channels = input.shape[:2]
    split = (batch, groups, channels // groups, math.prod(input.shape[2:]))
    return input.reshape(split).swapaxes(1, 2).reshape(input.shape)
