"""Brings what a model says of the pixels of its input to the pixels of the picture that the input was made of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from engine import Array
from service.images.axis_windows import Axis, Windows, bilinear, nearest
from service.images.geometry import ImageGeometry
from service.images.preparation import ImageInput, find_image_input
from service.tasks.task import TaskModel

_STRIP_SCORES = 1 << 22
"""Scores that are computed at a time, which bounds the memory that large pictures of many classes take."""


_LOWEST = np.float32(-1e37)
"""Stands for a score of minus infinity."""


@dataclass(frozen=True, slots=True)
class PictureAxes:
    """How the pixels of a picture lie on a map of scores that covers the model's input.

    Attributes:
        across: the columns.
        down: the rows.
        seen: columns and rows of the picture that the input shows: first and behind the last of each.
    """

    across: Axis
    down: Axis
    seen: tuple[tuple[int, int], tuple[int, int]]


def input_size(model: TaskModel) -> tuple[int, int] | None:
    """Return the columns and rows of the input that takes pictures; None where the model takes none."""
    if model.config.image is None:
        return None
    found = [find_image_input(model.config.image, port) for port in model.inputs]
    target = next(one for one in found if isinstance(one, ImageInput))
    return target.width, target.height


def picture_axes(
    geometry: ImageGeometry | None, size: tuple[int, int], taken: tuple[int, int]
) -> PictureAxes:
    """Return how a picture lies on a map of scores.

    Args:
        geometry: where the picture lies in the input; None where the input was sent as a tensor, and the map stands
            for itself.
        size: columns and rows of the map.
        taken: columns and rows of the input.
    """
    if geometry is None:
        across, down = (Axis(count, count, 1.0, 0.0) for count in size)
        return PictureAxes(across, down, ((0, size[0]), (0, size[1])))
    axes, seen = [], []
    sides = (geometry.width, geometry.height)
    for pixels, extent, side, scale, offset in zip(
        size, taken, sides, geometry.scale, geometry.offset, strict=True
    ):
        axes.append(Axis(pixels, side, scale * pixels / extent, offset * pixels / extent))
        centres = (np.arange(side) + 0.5) * scale + offset
        shown = np.flatnonzero((centres >= 0) & (centres <= extent))
        seen.append((int(shown[0]), int(shown[-1]) + 1) if len(shown) else (0, 0))
    return PictureAxes(axes[0], axes[1], (seen[0], seen[1]))


def sound_scores(scores: Array, is_argmax: bool) -> Array | None:
    """Return scores (classes, rows, columns) that can be interpolated; None where they decide nothing.

    A score of minus infinity rules a class out, as networks do that mask classes: a very low number does the same, and
    its product with a weight of 0 is a number. Pixels of which every class is ruled out belong to no most probable one.

    Args:
        scores: (classes, rows, columns).
        is_argmax: whether each pixel belongs to the class of its highest score.
    """
    if scores.dtype.kind != "f" or np.isfinite(scores).all():
        return scores
    if not (scores < np.inf).all():  # NaN is not, either
        return None
    if is_argmax and not np.isfinite(scores.max(axis=0)).all():
        return None
    return np.maximum(scores.astype(np.float32), _LOWEST)


def decide_pixels(
    scores: Array,
    axes: PictureAxes,
    decide: Callable[[Array], Array],
    dtype: "np.dtype[np.generic]",
    unseen: int,
) -> Array:
    """Decide about each pixel of a picture by the scores there, which are interpolated bilinearly.

    Args:
        scores: (classes, rows, columns), finite.
        axes: how the picture lies on them.
        decide: what is decided for scores of some rows, (classes, rows, columns); it returns (…, rows, columns).
        dtype: of what is decided.
        unseen: the decision about pixels that the model has not seen.

    Returns:
        (…, height, width) of the picture.
    """
    (left, right), (top, bottom) = axes.seen
    across, down = bilinear(axes.across), bilinear(axes.down)
    width, height = axes.across.count, axes.down.count
    count = len(scores)
    lead = decide(scores[:, :1, :1]).shape[:-2]
    out = np.full((*lead, height, width), unseen, dtype)
    for columns in _strips(left, right, max(1, _STRIP_SCORES // scores[:, :, 0].size)):
        stretched = _blend_columns(scores, across, columns)
        for rows in _strips(top, bottom, max(1, _STRIP_SCORES // (count * stretched.shape[2]))):
            taps, weights = down.taps[rows], down.weights[rows].astype(np.float32)[..., None]
            blended = stretched[:, taps[:, 0]] * weights[:, 0] + stretched[:, taps[:, 1]] * weights[:, 1]
            out[..., rows, columns] = decide(blended)
    return out


def spread_classes(classes: Array, axes: PictureAxes, unseen: int) -> Array:
    """Return for each pixel of a picture the class that a map, (rows, columns), has there."""
    (left, right), (top, bottom) = axes.seen
    columns, rows = (
        nearest(Axis(axis.pixels, axis.count, axis.step, axis.start + axis.step / 2)).taps[:, 0]
        for axis in (axes.across, axes.down)
    )
    out = np.full((axes.down.count, axes.across.count), unseen, classes.dtype)
    out[top:bottom, left:right] = classes[rows[top:bottom, None], columns[left:right]]
    return out


def _blend_columns(scores: Array, across: Windows, columns: slice) -> Array:
    taps, weights = across.taps[columns], across.weights[columns].astype(np.float32)
    left, right = scores[..., taps[:, 0]], scores[..., taps[:, 1]]
    return np.asarray((left * weights[:, 0] + right * weights[:, 1]).astype(np.float32, copy=False))


def _strips(first: int, last: int, size: int) -> Iterator[slice]:
    for start in range(first, last, size):
        yield slice(start, min(start + size, last))
