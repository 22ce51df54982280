"""Pooling of regions of interest (`torchvision.ops.roi_align`)."""

import math

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.binding.spatial_arguments import spread
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.sampling import Planes, SampleTap, linear_taps
from engine.kernels.windows import require_positive
from engine.layers.checks import check_dtype, check_kind, check_rank, check_shape
from engine.spec import TensorSpec, tensor_spec

MAX_GRID = 2**12
"""Maximum samples along one side of a cell: a region with more is treated as an error in its source."""
_BLOCK_ELEMENTS = 2**17
"""Maximum samples of a block, over all channels: they stay in the second-level cache."""


def _infer_regions(
    input: TensorSpec,
    rois: TensorSpec,
    output_size: Ints,
    spatial_scale: float,
) -> TensorSpec:
    check_kind("input", input, "f")
    check_rank("input", input, 4)
    check_dtype("rois", rois, input)
    check_rank("rois", rois, 2)
    check_shape("rois", rois, (rois.shape[0], 5))
    if not math.isfinite(spatial_scale):
        raise ArgumentError("spatial_scale", f"got {spatial_scale}", "a finite number")
    rows, columns = spread("output_size", output_size, 2)
    require_positive("output_size", min(rows, columns))
    return input.with_shape(checked_shape((rois.shape[0], input.shape[1], rows, columns), "output_size"))


@layer("torchvision.ops.RoIAlign", infer=_infer_regions)
def align_regions(
    input: Array,
    rois: Array,
    output_size: Ints,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Array:
    """Pool regions (regions, 5) of (batch, channels, height, width) to `output_size` cells each."""
    specs = tensor_spec(input), tensor_spec(rois)
    shape = _infer_regions(*specs, output_size, spatial_scale).shape
    rows, columns = shape[2:]
    return _align(input, rois, (rows, columns), spatial_scale, sampling_ratio, aligned)


def _align(
    input: Array,
    rois: Array,
    output_size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> Array:
    """Average every cell of every region over a grid of points, sampled linearly (Mask R-CNN, arXiv:1703.06870).

    Args:
        input: (batch, channels, height, width).
        rois: (regions, 5): item of the batch, left, top, right, bottom.
        output_size: rows and columns of cells per region.
        spatial_scale: elements of `input` per unit of `rois`.
        sampling_ratio: points along each side of a cell; zero or less takes as many as a cell has elements.
        aligned: whether a coordinate of 0 is the edge of the first element, not its centre.

    Returns:
        (regions, channels, *output_size) of the input's dtype.

    Raises:
        ArgumentError: a region is of no item of the batch, or its cells need more than `MAX_GRID` points a side.
    """
    items = _items(rois, input.shape[0])
    boxes = (rois.astype(np.float32) if rois.dtype == np.float16 else rois)[:, 1:] * spatial_scale
    starts, ends = boxes[:, 1::-1], boxes[:, :1:-1]
    if aligned:
        starts = starts - boxes.dtype.type(0.5)
        extents = ends - boxes.dtype.type(0.5) - starts
    else:
        extents = np.fmax(ends - starts, boxes.dtype.type(1))
    cells = extents / np.asarray(output_size, boxes.dtype)
    grids = _grids(cells, sampling_ratio)
    planes = Planes(input)
    output = np.zeros((len(rois), *output_size, planes.channels), boxes.dtype)
    for rows, columns in np.unique(grids[(grids > 0).all(1)], axis=0):
        members = np.flatnonzero((grids == (rows, columns)).all(1))
        step = max(1, _BLOCK_ELEMENTS // max(1, output[0].size * int(columns)))
        for first in range(0, len(members), step):
            block = members[first : first + step]
            output[block] = _average(
                planes, items[block], starts[block], cells[block], output_size, rows, columns
            )
    return np.ascontiguousarray(output.transpose(0, 3, 1, 2), input.dtype)


def _items(rois: Array, batch: int) -> Array:
    numbers = rois[:, 0]
    if numbers.size and not (numbers.min() >= 0 and numbers.max() < batch):
        problem = f"regions of items {numbers.min()} to {numbers.max()}"
        raise ArgumentError("rois", problem, f"items 0 to {batch - 1} of the batch")
    return numbers.astype(np.int64)


def _grids(cells: Array, sampling_ratio: int) -> Array:
    """Return how many points each region's cells have along each side."""
    if sampling_ratio > 0:
        grids = np.full(cells.shape, sampling_ratio, np.float64)
    else:
        grids = np.ceil(cells.astype(np.float64))
    if grids.size and not grids.max() <= MAX_GRID:
        raise ArgumentError("rois", f"cells of {grids.max()} samples a side", f"at most {MAX_GRID}")
    return np.maximum(grids, 0).astype(np.int64)


def _average(
    planes: Planes,
    items: Array,
    starts: Array,
    cells: Array,
    output_size: tuple[int, int],
    rows: int,
    columns: int,
) -> Array:
    """Return the cells (regions, rows of cells, columns of cells, channels) of regions with equal grids."""
    total = np.zeros((len(items), *output_size, planes.channels), cells.dtype)
    across = _samples(starts[:, 1], cells[:, 1], output_size[1], np.arange(columns), columns)
    horizontal = _taps(across.reshape(len(items), 1, -1), planes.sizes[1])
    for row in range(rows):
        down = _samples(starts[:, 0], cells[:, 0], output_size[0], np.arange(row, row + 1), rows)
        vertical = _taps(down, planes.sizes[0])
        sampled = planes.sample(items[:, None, None], (vertical, horizontal))
        total += sampled.reshape(*total.shape[:-1], columns, planes.channels).sum(3)
    total /= rows * columns
    return total


def _samples(starts: Array, cells: Array, count: int, steps: Array, per_cell: int) -> Array:
    """Return coordinates (regions, cells, steps) of the given samples of every cell along one axis."""
    offsets = (steps + 0.5).astype(cells.dtype)
    first = starts[:, None] + np.arange(count, dtype=cells.dtype) * cells[:, None]
    samples: Array = first[..., None] + offsets * cells[:, None, None] / per_cell
    return samples


def _taps(points: Array, size: int) -> list[SampleTap]:
    """Sample at the border what lies up to one element outside of it, and nothing beyond."""
    near = (points >= -1) & (points <= size)
    inside = np.clip(points, 0, points.dtype.type(size - 1))
    return linear_taps(np.where(near, inside, points.dtype.type(-2)))
