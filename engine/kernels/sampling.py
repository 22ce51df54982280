"""Sampling of planes at arbitrary points: `torch.nn.functional.grid_sample` and what works like it.

Points are given as one array of coordinates per spatial axis, in elements: 0 is the centre of the first one. Planes
are sampled with channels last, so that one look-up reads all channels of a point.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from engine.dtypes import Array
from engine.kernels.axes import MAX_ELEMENTS
from engine.kernels.resampling import cubic_weights

SampleTap = tuple[Array, Array | None]
"""Positions along one axis, and their weights; a position outside of the axis reads zero."""


class Planes:
    """Planes laid out for sampling.

    Attributes:
        sizes: length of each spatial axis.
        channels: values at each point.
    """

    def __init__(self, input: Array) -> None:
        """Lay out `input` (batch, channels, *spatial), of any floating dtype; float16 is sampled in float32."""
        dtype = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
        batch, self.channels, *self.sizes = input.shape
        self._count = math.prod(self.sizes)
        self._outside = batch * self._count
        self._rows = np.zeros((self._outside + 1, self.channels), dtype)
        target = self._rows[:-1].reshape(batch, self._count, self.channels)
        target[...] = input.reshape(batch, self.channels, self._count).swapaxes(1, 2)

    def sample(self, items: Array, axes: Sequence[Sequence[SampleTap]]) -> Array:
        """Sum weighted elements.

        Args:
            items: which item of the batch each point is in, broadcastable to the points.
            axes: for each spatial axis the taps of every point; every combination of them is summed.

        Returns:
            (*points, channels).
        """
        total: Array | None = None
        for taps in product(*axes):
            part = self._rows.take(self._locate(items, [positions for positions, _ in taps]), axis=0)
            weights = [weight for _, weight in taps if weight is not None]
            if weights:
                factor = weights[0]
                for weight in weights[1:]:
                    factor = factor * weight
                part *= factor[..., None]
            total = part if total is None else np.add(total, part, out=total)
        return self._rows[0] if total is None else total

    def _locate(self, items: Array, positions: Sequence[Array]) -> Array:
        """Return the rows of positions, one array for each axis; that of zeros for those outside."""
        rows = items
        inside: Array = np.asarray(True)
        for place, size in zip(positions, self.sizes, strict=True):
            rows = rows * size + place
            inside = inside & (place >= 0) & (place < size)
        return np.where(inside, rows, self._outside)


def linear_taps(points: Array) -> list[SampleTap]:
    """Return the elements on both sides of each coordinate, weighted by how near they are."""
    below = np.floor(points)
    share = points - below
    place = _to_position(below)
    return [(place, 1 - share), (place + 1, share)]


def nearest_taps(points: Array) -> list[SampleTap]:
    """Return the element nearest to each coordinate; of two equally near ones the even one."""
    return [(_to_position(points), None)]


def cubic_taps(points: Array, size: int, padding_mode: str, align_corners: bool) -> list[SampleTap]:
    """Return the four elements around each coordinate, weighted by cubic convolution.

    Each of the four is brought into the axis on its own, unlike the coordinates of the other modes.
    """
    below = np.floor(points)
    weights = cubic_weights(points - below)
    places = (bring_inside(below + shift, size, padding_mode, align_corners) for shift in (-1, 0, 1, 2))
    return [(_to_position(place), weight) for place, weight in zip(places, weights, strict=True)]


def bring_inside(points: Array, size: int, padding_mode: str, align_corners: bool) -> Array:
    """Return coordinates inside an axis of `size`: clipped (`border`), mirrored (`reflection`) or as they are.

    Mirrors stand at the centres of the outermost elements with `align_corners`, at their outer edges without.
    """
    if padding_mode == "zeros":
        return points
    if padding_mode == "reflection":
        points = _reflect(points, 0 if align_corners else -0.5, size - 1 if align_corners else size)
    clipped: Array = np.fmin(np.fmax(points, points.dtype.type(0)), points.dtype.type(size - 1))
    return clipped


def _reflect(points: Array, low: float, span: float) -> Array:
    if span <= 0:
        return np.zeros_like(points)
    low, span = points.dtype.type(low), points.dtype.type(span)
    distance = np.abs(points - low)
    extra = np.fmod(distance, 2 * span)
    mirrored: Array = np.minimum(extra, 2 * span - extra) + low
    return mirrored


def _to_position(points: Array) -> Array:
    """Round coordinates to positions; what no integer can hold, NaN included, ends up outside of every axis."""
    limit = float(MAX_ELEMENTS)
    bounded = np.fmax(np.fmin(points, points.dtype.type(limit)), points.dtype.type(-limit))
    positions: Array = np.rint(np.where(np.isnan(points), points.dtype.type(-limit), bounded)).astype(
        np.int64
    )
    return positions
