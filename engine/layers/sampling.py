"""Spatial transformers: grids of sampling points, and images sampled at them."""

import math

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.sampling import Planes, SampleTap, bring_inside, cubic_taps, linear_taps, nearest_taps
from engine.layers.checks import check_dtype, check_kind, check_rank
from engine.spec import TensorSpec, tensor_spec

_MODES = ("bilinear", "nearest", "bicubic")
_PADDING_MODES = ("zeros", "border", "reflection")


def _infer_grid_sample(input: TensorSpec, grid: TensorSpec, mode: str, padding_mode: str) -> TensorSpec:
    check_kind("input", input, "f")
    check_dtype("grid", grid, input)
    check_rank("input", input, 4, 5)
    if mode not in _MODES or (mode == "bicubic" and input.rank == 5):
        known = _MODES if input.rank == 4 else _MODES[:2]
        raise ArgumentError("mode", f"got {mode!r}", f"one of {', '.join(known)}")
    if padding_mode not in _PADDING_MODES:
        raise ArgumentError("padding_mode", f"got {padding_mode!r}", f"one of {', '.join(_PADDING_MODES)}")
    batch, channels, *sizes = input.shape
    if grid.rank != input.rank or (grid.shape[0], grid.shape[-1]) != (batch, len(sizes)):
        axes = ", ".join(("depth", "height", "width")[-len(sizes) :])
        raise ArgumentError("grid", f"has shape {grid.shape}", f"({batch}, {axes}, {len(sizes)})")
    if not math.prod(sizes):
        raise ArgumentError("input", f"has shape {input.shape}", "no empty spatial axis")
    return input.with_shape(checked_shape((batch, channels, *grid.shape[1:-1]), "grid"))


@layer("F.grid_sample", infer=_infer_grid_sample)
def grid_sample(
    input: Array,
    grid: Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """Sample (batch, channels, *spatial) at the points of a grid (batch, *output, axes).

    A point is x, y, z: its place along the last axis first. -1 and 1 are the ends of an axis: the centres of its
    outermost elements with `align_corners`, their outer edges without.
    """
    shape = _infer_grid_sample(tensor_spec(input), tensor_spec(grid), mode, padding_mode).shape
    corners = bool(align_corners)
    points = grid.astype(np.float32) if grid.dtype == np.float16 else grid
    axes = [
        _taps(points[..., -1 - axis], size, mode, padding_mode, corners)
        for axis, size in enumerate(input.shape[2:])
    ]
    items = np.arange(input.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
    sampled = Planes(input).sample(items, axes)
    return np.ascontiguousarray(np.moveaxis(sampled, -1, 1), input.dtype).reshape(shape)


def _taps(points: Array, size: int, mode: str, padding_mode: str, align_corners: bool) -> list[SampleTap]:
    """Convert the coordinates of one axis from -1 … 1 to elements, and those to sampling positions."""
    half = points.dtype.type((size - 1 if align_corners else size) / 2)
    elements = (points + 1) * half
    if not align_corners:
        elements -= points.dtype.type(0.5)
    if mode == "bicubic":
        return cubic_taps(elements, size, padding_mode, align_corners)
    elements = bring_inside(elements, size, padding_mode, align_corners)
    return nearest_taps(elements) if mode == "nearest" else linear_taps(elements)


def _infer_affine_grid(theta: TensorSpec, size: Ints) -> TensorSpec:
    check_kind("theta", theta, "f")
    axes = len(size) - 2
    if axes not in (2, 3) or min(size) < 1:
        raise ArgumentError("size", f"got {size}", "4 or 5 sizes: (batch, channels, *spatial)")
    if theta.shape != (size[0], axes, axes + 1):
        raise ArgumentError("theta", f"has shape {theta.shape}", f"({size[0]}, {axes}, {axes + 1})")
    return theta.with_shape(checked_shape((size[0], *size[2:], axes)))


@layer("F.affine_grid", infer=_infer_affine_grid)
def affine_grid(theta: Array, size: Ints, align_corners: bool | None = None) -> Array:
    """Return the grid of points (batch, *spatial, axes) that affine maps (batch, axes, axes + 1) send an image to."""
    shape = _infer_affine_grid(tensor_spec(theta), size).shape
    dtype = np.dtype(np.float32) if theta.dtype == np.float16 else theta.dtype
    spatial = shape[1:-1]
    base = np.ones((*spatial, len(spatial) + 1), dtype)
    for axis, length in enumerate(spatial):
        steps = _ends_to_ends(length, bool(align_corners), dtype)
        base[..., len(spatial) - 1 - axis] = steps.reshape(-1, *[1] * (len(spatial) - 1 - axis))
    points = base.reshape(-1, len(spatial) + 1) @ theta.astype(dtype, copy=False).swapaxes(1, 2)
    return points.reshape(shape).astype(theta.dtype, copy=False)


def _ends_to_ends(count: int, align_corners: bool, dtype: np.dtype[np.generic]) -> Array:
    """Return the centres of `count` elements between -1 and 1."""
    if count == 1:
        return np.zeros(1, dtype)
    centres = np.linspace(-1, 1, count)
    return (centres if align_corners else centres * ((count - 1) / count)).astype(dtype)
