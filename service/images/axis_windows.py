"""Which pixels of a picture each pixel of a resized one is made of, along one axis, and with which weights.

Pixel i of the result lies at `(i + 0.5) * step + start` of the picture, in pixels from its edge. Each function returns
the windows of all pixels of the result, in the arithmetic of the library that it follows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine import Array


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis along which a picture is resized.

    Attributes:
        pixels: of the picture.
        count: of the result.
        step: pixels of the picture for each pixel of the result.
        start: where the edge of the result lies.
        dtype: in which filters that do not smooth compute places.
    """

    pixels: int
    count: int
    step: float
    start: float
    dtype: type[np.floating] = np.float64


@dataclass(frozen=True, slots=True)
class Windows:
    """The pixels of a picture that each pixel of the result is made of.

    Attributes:
        taps: (count, width) their places; those at the edge stand for all beyond it.
        weights: (count, width) their weights.
    """

    taps: Array
    weights: Array

    @property
    def width(self) -> int:
        """How many pixels each window has."""
        return int(self.taps.shape[1])

    def matrix(self, place: slice, used: Array) -> Array:
        """Return the weights of some windows for some pixels of the picture, in ascending order: (windows, pixels)."""
        taps = self.taps[place]
        matrix = np.zeros((len(taps), len(used)))
        np.add.at(matrix, (np.arange(len(taps))[:, None], np.searchsorted(used, taps)), self.weights[place])
        return matrix


def nearest(axis: Axis) -> Windows:
    """Return the windows of `nearest`, of one pixel each: that at the left edge, as PyTorch and OpenCV choose it."""
    edges = np.arange(axis.count, dtype=axis.dtype) * axis.dtype(axis.step) + axis.dtype(axis.start)
    return _windows(axis, np.floor(edges).astype(np.int64), np.ones((axis.count, 1)))


def bilinear(axis: Axis) -> Windows:
    """Return the windows of a bilinear filter that does not smooth: of two pixels."""
    left, part = _split(axis)
    return _windows(axis, left, np.stack([1 - part, part], axis=1))


def bicubic(axis: Axis) -> Windows:
    """Return the windows of a bicubic filter that does not smooth: of four pixels (Keys, 1981, a = -0.75)."""
    left, part = _split(axis)
    distances = np.stack([1 + part, part, 1 - part, 2 - part], axis=1)
    return _windows(axis, left - 1, _cubic(distances, -0.75))


def smooth_bilinear(axis: Axis) -> Windows:
    """Return the windows of a triangle as wide as two pixels of the result, where it shrinks."""
    return _smooth(axis, lambda distances: (1 - distances).clip(0, None), 1.0)


def smooth_bicubic(axis: Axis) -> Windows:
    """Return the windows of a cubic filter as wide as four pixels of the result, where it shrinks (a = -0.5)."""
    return _smooth(axis, lambda distances: _cubic(distances, -0.5), 2.0)


def area(axis: Axis) -> Windows:
    """Return the windows of OpenCV's `INTER_AREA` where it shrinks: the parts of pixels that a pixel covers."""
    left = np.arange(axis.count) * axis.step + axis.start
    first = np.floor(left + 1e-9).astype(np.int64)
    taps = first[:, None] + np.arange(int(np.ceil(axis.step)) + 1)
    covered = np.minimum(taps + 1, (left + axis.step)[:, None]) - np.maximum(taps, left[:, None])
    covered = np.where(taps < axis.pixels, covered, 0).clip(0, None)
    return _windows(axis, first, covered / covered.sum(axis=1, keepdims=True))


def area_enlarged(axis: Axis) -> Windows:
    """Return the windows of `INTER_AREA` where it enlarges: two pixels, sharper than those of a bilinear filter."""
    places = np.arange(axis.count)
    left = np.floor(places * axis.step + axis.start)
    part = (places + 1) - (left + 1 - axis.start) / axis.step
    part = np.where(part <= 0, 0.0, part - np.floor(part))
    return _windows(axis, left.astype(np.int64), np.stack([1 - part, part], axis=1))


def _split(axis: Axis) -> tuple[Array, Array]:
    """Return for each pixel of the result the pixel of the picture on its left, and how far it is beyond that."""
    centres = np.arange(axis.count, dtype=axis.dtype) + axis.dtype(0.5)
    places = (centres * axis.dtype(axis.step) + axis.dtype(axis.start - 0.5)).astype(np.float32)
    left = np.floor(places)
    return left.astype(np.int64), (places - left).astype(np.float64)


def _cubic(distances: Array, a: float) -> Array:
    x = np.abs(distances)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((x - 5) * x + 8) * x * a - 4 * a
    return np.asarray(np.where(x < 1, near, np.where(x < 2, far, 0.0)))


def _smooth(axis: Axis, kernel: Callable[[Array], Array], reach: float) -> Windows:
    """Return the windows of a filter that covers all pixels, as Pillow and PyTorch compute them.

    Args:
        axis: the axis.
        kernel: weights by distance from the centre, in pixels of the larger of picture and result.
        reach: the distance from which on they are nothing.
    """
    width = max(axis.step, 1.0)
    centres = (np.arange(axis.count) + 0.5) * axis.step + axis.start
    first = np.floor(centres - reach * width + 0.5).clip(0, None).astype(np.int64)
    last = np.minimum(np.floor(centres + reach * width + 0.5), axis.pixels)
    taps = first[:, None] + np.arange(int(2 * reach * width) + 3)
    weights = kernel(np.abs(taps + 0.5 - centres[:, None]) / width)
    weights = np.where(taps < last[:, None], weights, 0.0)
    return _windows(axis, first, weights / weights.sum(axis=1, keepdims=True))


def _windows(axis: Axis, first: Array, weights: Array) -> Windows:
    taps = first[:, None] + np.arange(weights.shape[1])
    return Windows(taps.clip(0, axis.pixels - 1), weights)
