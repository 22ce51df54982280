"""Resampling of spatial axes to another size (`torch.nn.functional.interpolate`).

Every mode but `area` works axis by axis: a table holds, for each output position, the input positions it is made
of and their weights. Tables depend on sizes alone and are cached.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.adaptive_pooling import adaptive_avg_pool
from engine.kernels.blocks import plane_blocks
from engine.kernels.windows import require_floating, require_rank

_RANKS = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "area": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
"""Mode -> the numbers of spatial axes it is defined for."""

_NEAREST = ("nearest", "nearest-exact")

_SMALL_PLANE = 128
"""Height + width up to which PyTorch's CPU kernel for `nearest` in 2-d ignores a scale factor on axes whose length
stays or doubles."""


@dataclass(frozen=True)
class Tap:
    """For each output position the input position that it takes, and the weight; None means 1."""

    positions: Array
    weights: Array | None


Table: TypeAlias = tuple[Tap, ...]
"""The taps whose sum is the output; none if the axis stays as it is."""


def resample(
    input: Array,
    size: Sequence[int] | None = None,
    scale_factor: Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Array:
    """Resample the spatial axes of `input`.

    Args:
        input: (batch, channels, *spatial); any dtype for the nearest modes, else floating. float16 is computed
            in float32.
        size: length of each spatial axis of the output, or None with `scale_factor`.
        scale_factor: output length over input length for each spatial axis. It is also the distance between
            sampling points, though the output's length is rounded down, unless `recompute_scale_factor`.
        mode: `nearest`, `nearest-exact`, `linear`, `bilinear`, `trilinear`, `bicubic` or `area`.
        align_corners: whether the centres of the corner elements, not their outer edges, stay in place; for
            the linear and cubic modes alone.
        recompute_scale_factor: take the distance between sampling points from the rounded sizes.

    Returns:
        (batch, channels, *output) of the input's dtype.

    Raises:
        ArgumentError: what `resampled_shape` raises, or the mode does not compute with the input's dtype.
    """
    shape = resampled_shape(input.shape, size, scale_factor, mode, align_corners, recompute_scale_factor)
    if mode == "area":
        return adaptive_avg_pool(input, shape[2:])
    compute = input.dtype
    if mode not in _NEAREST:
        require_floating("input", input)
        compute = np.promote_types(np.float32, input.dtype)
    scales = None if recompute_scale_factor else scale_factor
    tables = resampling_tables(input.shape[2:], shape[2:], scales, mode, bool(align_corners), compute)
    output = np.empty(shape, input.dtype)
    for source, target in plane_blocks(input, output):
        target[...] = _apply_tables(source.astype(compute, copy=False), tables)
    return output


def resampling_tables(
    sizes: Sequence[int],
    counts: Sequence[int],
    scale_factor: Sequence[float] | None,
    mode: str,
    align_corners: bool,
    dtype: np.dtype[Any],
) -> list[Table]:
    """Return how each spatial axis of `counts` elements is made of one of `sizes`.

    Args:
        sizes: lengths of the input's axes.
        counts: lengths of the output's axes.
        scale_factor: for each axis, where the distance between sampling points follows from it alone.
        mode: any but `area`.
        align_corners: as in `resample`.
        dtype: dtype of the weights.
    """
    scales: Sequence[float | None] = scale_factor or [None] * len(sizes)
    axes = list(zip(sizes, counts, scales, strict=True))
    if mode in _NEAREST:
        small_plane = len(axes) == 2 and sum(counts) <= _SMALL_PLANE
        return [_nearest_table(*axis, mode == "nearest-exact", small_plane) for axis in axes]
    make_table = _cubic_table if mode == "bicubic" else _linear_table
    return [make_table(*axis, align_corners, dtype) for axis in axes]


def resampled_shape(
    input_shape: Sequence[int],
    size: Sequence[int] | None = None,
    scale_factor: Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> tuple[int, ...]:
    """Return the shape that `resample` gives an input of `input_shape`.

    Raises:
        ArgumentError: `mode` is unknown or not defined for the input's rank; not exactly one of `size` and
            `scale_factor` is given, or not one value for each spatial axis; `align_corners` or
            `recompute_scale_factor` is given where it has no meaning; or an axis would be empty.
    """
    if mode not in _RANKS:
        raise ArgumentError("mode", f"got {mode!r}", f"one of {', '.join(_RANKS)}")
    rank = len(input_shape) - 2
    if rank not in _RANKS[mode]:
        axes = " or ".join(str(known + 2) for known in _RANKS[mode])
        raise ArgumentError("input", f"has {rank + 2} axes", f"{axes} for mode {mode!r}")
    if align_corners is not None and (mode in _NEAREST or mode == "area"):
        raise ArgumentError("align_corners", f"got {align_corners} with mode {mode!r}", "None")
    if (size is None) == (scale_factor is None):
        problem = "neither it nor scale_factor is given" if size is None else "scale_factor is given as well"
        raise ArgumentError("size", problem, "exactly one of the two")
    if recompute_scale_factor and size is not None:
        raise ArgumentError("recompute_scale_factor", "got True with an explicit size", "a scale_factor")
    output = _output_sizes(input_shape[2:], size, scale_factor)
    if min(*input_shape[2:], *output) < 1:
        problem = f"{tuple(input_shape[2:])} would become {output}"
        raise ArgumentError("size" if scale_factor is None else "scale_factor", problem, "no empty axis")
    return (*input_shape[:2], *output)


def resample_size(size: int, scale_factor: float) -> int:
    """Return the length of an axis of `size` after scaling: rounded down.

    Raises:
        ArgumentError: the factor is not finite.
    """
    if not math.isfinite(scale_factor):
        raise ArgumentError("scale_factor", f"got {scale_factor}", "a finite number")
    return math.floor(size * scale_factor)


def _output_sizes(
    sizes: Sequence[int], size: Sequence[int] | None, scale_factor: Sequence[float] | None
) -> tuple[int, ...]:
    if size is not None:
        require_rank("size", size, len(sizes))
        return tuple(size)
    factors = scale_factor or ()
    require_rank("scale_factor", factors, len(sizes))
    return tuple(resample_size(length, factor) for length, factor in zip(sizes, factors, strict=True))


def _apply_tables(planes: Array, tables: Sequence[Table]) -> Array:
    """Resample (planes, *spatial) axis by axis, the last one first, while there is least of it to gather."""
    for axis in range(len(tables), 0, -1):
        if tables[axis - 1]:
            first, *others = (_gather(planes, axis, tap) for tap in tables[axis - 1])
            for part in others:
                first += part
            planes = first
    return planes


def _gather(planes: Array, axis: int, tap: Tap) -> Array:
    part = planes.take(tap.positions, axis)
    if tap.weights is not None:
        part *= tap.weights.reshape(-1, *(1,) * (planes.ndim - axis - 1))
    return part


@lru_cache(maxsize=64)
def _nearest_table(size: int, count: int, scale: float | None, exact: bool, small_plane: bool) -> Table:
    """Return the input position that each of `count` outputs copies; PyTorch finds it in float32."""
    if small_plane and not exact and count in (size, 2 * size):
        scale = None
    step = np.float32(size) / np.float32(count) if scale is None else np.float32(1 / scale)
    points = (np.arange(count, dtype=np.float32) + np.float32(0.5 if exact else 0)) * step
    return (Tap(np.minimum(np.floor(points).astype(np.int64), size - 1), None),)


@lru_cache(maxsize=64)
def _linear_table(
    size: int, count: int, scale: float | None, align_corners: bool, dtype: np.dtype[Any]
) -> Table:
    """Return the two neighbours of each of `count` sampling points; none where the length stays."""
    if count == size:
        return ()
    points = np.maximum(_sampling_points(size, count, scale, align_corners, dtype), 0)
    left = np.minimum(points.astype(np.int64), size - 1)
    fraction = np.clip(points - left.astype(dtype), 0, 1).astype(dtype)
    return Tap(left, 1 - fraction), Tap(np.minimum(left + 1, size - 1), fraction)


@lru_cache(maxsize=64)
def _cubic_table(
    size: int, count: int, scale: float | None, align_corners: bool, dtype: np.dtype[Any]
) -> Table:
    """Return the four neighbours of each of `count` sampling points."""
    points = _sampling_points(size, count, scale, align_corners, dtype)
    left = np.minimum(np.floor(points).astype(np.int64), size - 1)
    fraction = np.clip(points - left.astype(dtype), 0, 1).astype(dtype)
    return tuple(
        Tap(np.clip(left + offset, 0, size - 1), weight.astype(dtype))
        for offset, weight in enumerate(cubic_weights(fraction), -1)
    )


def _sampling_points(
    size: int, count: int, scale: float | None, align_corners: bool, dtype: np.dtype[Any]
) -> Array:
    """Return where in an axis of `size` each of `count` outputs samples it, in units of its elements.

    PyTorch rounds the step and the result to the computing dtype, but not what lies between them.
    """
    scalar = dtype.type
    points: Array = np.arange(count, dtype=np.float64)
    if align_corners:
        step = scalar(size - 1) / scalar(count - 1) if count > 1 else scalar(0)
        points *= np.float64(step)
    else:
        step = scalar(size) / scalar(count) if scale is None else scalar(1 / scale)
        points = (points + 0.5) * np.float64(step) - 0.5
    return points.astype(dtype)


_CUBIC = -0.75
"""PyTorch's parameter of the cubic convolution kernel (Keys, 1981, there called a)."""


def cubic_weights(share: Array) -> list[Array]:
    """Return the weights of the four elements around points, which are so far behind the second of them."""

    def near(distance: Array) -> Array:
        return ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance * distance + 1

    def far(distance: Array) -> Array:
        return ((_CUBIC * distance - 5 * _CUBIC) * distance + 8 * _CUBIC) * distance - 4 * _CUBIC

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]
