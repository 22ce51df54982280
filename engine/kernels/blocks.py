"""Cache blocking for the second-level cache: columns of matrix products, and planes."""

import math
import threading
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from engine.dtypes import Array

BLOCK_BYTES = 3 << 19
"""Maximum bytes of a block of columns: three quarters of the 2 MB second-level cache of current servers.

Measured on the layers of ResNet18 and YOLOv5s: 1 to 2 MB is best, 256 KB and 3 MB are a tenth slower.
"""

PLANE_BYTES = 1 << 19
"""Maximum bytes of a block of planes in one array; measured on ResNet18's and YOLOv5's max pooling."""

KEPT_BYTES = 4 << 20
"""Largest buffer that a thread reuses for its next product."""

MIN_COLUMNS = 96
"""Fewest columns of a product, however large one column is: narrower ones waste the weights' packing."""


def columns_per_block(column_bytes: int) -> int:
    """Return how many columns of `column_bytes` bytes one product should take."""
    return max(BLOCK_BYTES // max(1, column_bytes), MIN_COLUMNS)


def plane_blocks(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Cut arrays of shape (batch, channels, *spatial) into blocks of planes that fit the cache together.

    Yields:
        (planes, *spatial) of each array, the same planes of all. They are views, but of an input whose batch
        and channels do not lie one after the other.
    """
    planes = math.prod(arrays[0].shape[:2])
    flat = [array.reshape(planes, *array.shape[2:]) for array in arrays]
    widest = max(math.prod(array.shape[2:]) * array.itemsize for array in arrays)
    size = max(1, PLANE_BYTES // max(1, widest))
    for start in range(0, planes, size):
        yield tuple(array[start : start + size] for array in flat)


class _Scratch(threading.local):
    """Memory that each thread reuses from one product to the next.

    A new buffer is returned to the system on release and faults in page by page when written:
    a twentieth of the time of ResNet18, a tenth of MobileNetV2's depthwise convolutions.
    """

    memory = np.empty(0, np.uint8)


_scratch = _Scratch()


def column_buffer(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialised array, valid until this thread requests the next one."""
    size = math.prod(shape) * dtype.itemsize
    if size > KEPT_BYTES:
        return np.empty(shape, dtype)
    if _scratch.memory.size < size:
        _scratch.memory = np.empty(max(size, BLOCK_BYTES), np.uint8)
    return _scratch.memory[:size].view(dtype).reshape(shape)


def cache_blocks(
    leading: tuple[int, int], spatial: tuple[int, ...], limit: int
) -> Iterator[tuple[slice, slice, list[slice], slice]]:
    """Cut (batch, groups, *spatial) into blocks of about equal size and at most `limit` elements.

    Yields:
        The slices of batch and groups, those of each spatial axis, and the same as one slice of the flattened
        spatial axes: a block spans several steps of an axis only if it spans all of the axes after it.
    """
    extents = (*leading, *spatial)
    sizes: list[int] = []
    for extent in reversed(extents):
        size = max(1, min(extent, limit))
        sizes.insert(0, math.ceil(extent / math.ceil(extent / size)))
        limit //= extent
    starts = (range(0, extent, size) for extent, size in zip(extents, sizes, strict=True))
    for corner in product(*starts):
        cuts = [
            slice(start, min(start + size, extent))
            for start, size, extent in zip(corner, sizes, extents, strict=True)
        ]
        items, parts, *region = cuts
        first = last = 0
        for cut, extent in zip(region, spatial, strict=True):
            first, last = first * extent + cut.start, last * extent + cut.stop - 1
        yield items, parts, region, slice(first, last + 1)
