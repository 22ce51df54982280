"""Whether two arrays hold the same values, but for rounding."""

from collections.abc import Iterator

import numpy as np

from engine.dtypes import Array

_OUTLIER = 1000.0
"""Over how many times the median magnitude a tensor's largest element is not what its others are measured by."""
_MAX_KINDS = 1024
"""Maximum parts along a dimension with separate tolerances."""


def is_close(ours: Array, wanted: Array, tolerance: float) -> bool:
    """Whether all elements agree: whole numbers exactly, others by their own magnitude and by that of the tensor.

    A tensor may hold values of several kinds: a YOLO network puts pixels and probabilities side by side. Where it does
    not agree as a whole, parts along one of its dimensions are measured by their own magnitudes.

    Args:
        ours: an array.
        wanted: the reference, of the same shape.
        tolerance: largest difference that is ignored, relative to the value and to the largest of its tensor.
    """
    if wanted.dtype.kind in "biu":
        return np.array_equal(ours, wanted)
    whole = magnitude(wanted) or 1.0
    return _agree(ours, wanted, tolerance, whole) or any(
        # a part of zeros alone has no magnitude
        all(
            _agree(ours[part], wanted[part], tolerance, magnitude(wanted[part]) or min(1.0, whole))
            for part in parts
        )
        for parts in _partings(wanted)
    )


def _agree(ours: Array, wanted: Array, tolerance: float, magnitude: float) -> bool:
    return np.allclose(ours, wanted, rtol=tolerance, atol=tolerance * magnitude, equal_nan=True)


def _partings(values: Array) -> Iterator[list[tuple[slice | int, ...]]]:
    """Yield the parts along each dimension but that of the batch."""
    for axis in range(1, values.ndim):
        if 1 < values.shape[axis] <= _MAX_KINDS:
            before = (slice(None),) * axis
            yield [(*before, place) for place in range(values.shape[axis])]


def magnitude(values: Array) -> float:
    """Return what a tensor's small elements are measured by: its largest; the limit of masks and the like is none.

    0 where all are zeros, or not finite.
    """
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    return float(min(sizes.max(), _OUTLIER * np.median(sizes))) if sizes.size else 0.0
