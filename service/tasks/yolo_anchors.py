"""Anchors in a graph beside the undecoded maps of YOLOv5."""

from collections.abc import Iterator, Sequence

import numpy as np

from engine import Array, RuntimeOperator

_OPERATOR = "pnnx.Attribute"
_MAX_ANCHORS = 64


def stored_anchors(
    operators: Sequence[RuntimeOperator], strides: Sequence[float], coarsest_first: bool = False
) -> list[Array]:
    """Return the anchors that constants of a graph may be, each as (maps, anchors, 2) in pixels, without repetitions.

    A constant holds those of all maps, (maps, anchors, 2), or there is one for each map, (1, anchors, 1, 1, 2), in the
    order of the file, which is that of the maps. `Detect` of YOLOv5 keeps anchors in cells, and a grid of them in
    pixels: a map's cells are larger than one, and no anchor of a map is as small in pixels as its cell is.

    Args:
        operators: those of the graph.
        strides: pixels of the input per cell of each map, the finest first.
        coarsest_first: whether the graph gives the coarsest map first.

    Returns:
        The anchors of the finest map first.
    """
    count = len(strides)
    arrays = [_squeezed(one) for one in _constants(operators)]
    whole = [one for one in arrays if one.ndim == 3 and one.shape[0] == count and one.shape[2] == 2]
    single = [one for one in arrays if one.ndim == 2 and one.shape[1] == 2]
    alike = len({one.shape for one in single}) == 1
    if not whole and alike and len(single) == count:
        whole = [np.stack(single)]
    found: list[Array] = []
    for one in whole:
        scaled = _in_pixels(one, strides, coarsest_first)
        if scaled is not None and not any(np.allclose(scaled, other) for other in found):
            found.append(scaled)
    return found


def _constants(operators: Sequence[RuntimeOperator]) -> Iterator[Array]:
    for operator in operators:
        for attribute in operator.attrs.values() if operator.type == _OPERATOR else ():
            shape = attribute.shape
            small = len(shape) <= 6 and shape[-1:] == (2,) and 0 not in shape
            if small and attribute.dtype in ("f32", "f64", "f16"):
                yield attribute.array().astype(np.float64)


def _squeezed(array: Array) -> Array:
    """Return an array without axes of length 1, and without those of a grid that repeats its anchors in every cell."""
    if array.ndim == 5 and array.shape[0] == 1:  # (1, anchors, rows, columns, 2)
        first = array[:, :, :1, :1]
        array = first if np.array_equal(array, np.broadcast_to(first, array.shape)) else array
    kept = [extent for extent in array.shape[:-1] if extent != 1]
    return array.reshape(*kept, 2)


def _in_pixels(anchors: Array, strides: Sequence[float], coarsest_first: bool) -> Array | None:
    """Return anchors in pixels, the finest map's first; None where it is not clear what they are counted in."""
    if not (np.isfinite(anchors).all() and (anchors > 0).all() and anchors.shape[1] <= _MAX_ANCHORS):
        return None
    sizes = np.array(strides)
    areas = anchors.prod(axis=2).mean(axis=1)
    ordered = anchors if areas[0] <= areas[-1] else anchors[::-1]
    if (ordered.max(axis=(1, 2)) > sizes).all():
        return ordered
    # in cells, those of a coarse map may be the smaller ones: only the order of the maps shows which they are
    cells = anchors[::-1] if coarsest_first else anchors
    return cells * sizes[:, None, None] if (cells.max(axis=(1, 2)) <= sizes).all() else None
