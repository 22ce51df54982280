"""Padding of the last axes with a constant or with the input's own elements (`torch.nn.functional.pad`)."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.windows import BlockIndex, Pairs, along


def pad(input: Array, pad: Sequence[int], mode: str = "constant", value: complex | None = None) -> Array:
    """Pad the last axes of `input`; negative pads crop.

    Args:
        input: any shape and dtype.
        pad: (before, after) of the last axis, then of the one before it, and so on, as one flat sequence.
        mode: `constant`, `reflect`, `replicate` or `circular`.
        value: what `constant` pads with; None means 0. The other modes take none.

    Returns:
        A new array of the input's dtype.

    Raises:
        ArgumentError: what `padded_shape` raises.
    """
    padded_shape(input.shape, pad, mode, value)
    pairs = _pairs(pad)
    padded = input
    if mode == "constant":
        padded = pad_constant(input, pairs, 0 if value is None else value)
    else:
        for axis, (before, after) in enumerate(pairs, input.ndim - len(pairs)):
            if before or after:
                padded = _extend(padded, axis, before, after, mode)
    return padded.copy() if padded is input else padded


def padded_shape(
    shape: Sequence[int], pad: Sequence[int], mode: str = "constant", value: complex | None = None
) -> tuple[int, ...]:
    """Return the shape that `pad` gives an input of `shape`.

    Raises:
        ArgumentError: `pad` has an odd number of values or more pairs than there are axes, `mode` is unknown,
            an axis is too short for its pads, or `value` comes with a mode that has no use for it.
    """
    if len(pad) % 2 or len(pad) > 2 * len(shape):
        expected = f"pairs of (before, after) for at most {len(shape)} axes"
        raise ArgumentError("pad", f"has {len(pad)} values", expected)
    if mode != "constant" and mode not in _SOURCES:
        raise ArgumentError("mode", f"got {mode!r}", f"one of constant, {', '.join(_SOURCES)}")
    if mode != "constant" and value:
        raise ArgumentError("value", f"got {value} with mode {mode!r}", "a value only with mode 'constant'")
    kept = len(shape) - len(pad) // 2
    pairs = _pairs(pad)
    for size, (before, after) in zip(shape[kept:], pairs, strict=True):
        _check_axis(size, before, after, mode)
    return (*shape[:kept], *(size + sum(pair) for size, pair in zip(shape[kept:], pairs, strict=True)))


def pad_constant(input: Array, padding: Pairs, value: complex = 0) -> Array:
    """Pad (or crop) the last axes of `input` with a constant, `padding` given first axis first.

    Returns:
        `input` itself where nothing is to be padded or cropped on either side of any axis, which spares the
        caller a copy; else a new C-contiguous array.
    """
    if not any(before or after for before, after in padding):
        return input
    leading = input.ndim - len(padding)
    sizes = input.shape[leading:]
    padded = np.full(
        (*input.shape[:leading], *(size + sum(pair) for size, pair in zip(sizes, padding, strict=True))),
        value,
        input.dtype,
    )
    source: list[slice] = []
    target: list[slice] = []
    for size, (before, after) in zip(sizes, padding, strict=True):
        source.append(slice(max(0, -before), size + min(0, after)))
        target.append(slice(max(0, before), size + before + min(0, after)))
    whole: BlockIndex = (...,)
    padded[(*whole, *target)] = input[(*whole, *source)]
    return padded


def _pairs(pad: Sequence[int]) -> list[tuple[int, int]]:
    return [(pad[at], pad[at + 1]) for at in range(len(pad) - 2, -1, -2)]


def _check_axis(size: int, before: int, after: int, mode: str) -> None:
    from_whole_axis = mode in ("reflect", "replicate")
    kept = size + (before + after if from_whole_axis else min(before, 0) + min(after, 0))
    if kept < 0:
        raise ArgumentError(
            "pad", f"({before}, {after}) crops more than an axis of {size} has", "smaller crops"
        )
    longest = max(before, after)
    limits = {"constant": longest, "replicate": longest if size else 0, "reflect": size - 1, "circular": kept}
    if longest > max(0, limits[mode]):
        problem = f"got ({before}, {after}) for an axis of {size} with mode {mode!r}"
        raise ArgumentError("pad", problem, f"pads of at most {max(0, limits[mode])}")


def source_positions(size: int, before: int, after: int, mode: str) -> Array:
    """Return which position of an axis of `size` each one of the padded axis copies, in a mode other than constant."""
    if mode != "circular":
        return _SOURCES[mode](np.arange(-before, size + after), size)
    # wraps around what is left after cropping; the other modes see the whole axis
    first, kept = max(0, -before), size + min(0, before) + min(0, after)
    return first + _wrap(np.arange(-max(0, before), kept + max(0, after)), kept)


def _extend(array: Array, axis: int, before: int, after: int, mode: str) -> Array:
    size = array.shape[axis]
    positions = source_positions(size, before, after, mode)
    start, stop = max(0, before), max(0, before, min(size + before, positions.size))
    middle = slice(max(0, -before), max(0, -before) + stop - start)
    parts = [
        np.take(array, positions[:start], axis),
        array[along(axis, middle)],
        np.take(array, positions[stop:], axis),
    ]
    return np.concatenate(parts, axis)


def _reflect(position: Array, size: int) -> Array:
    mirrored: Array = (size - 1) - np.abs((size - 1) - np.abs(position))
    return mirrored


def _replicate(position: Array, size: int) -> Array:
    return np.minimum(np.maximum(position, 0), size - 1)


def _wrap(position: Array, size: int) -> Array:
    return np.remainder(position, size)


_SOURCES: dict[str, Callable[[Array, int], Array]] = {
    "reflect": _reflect,
    "replicate": _replicate,
    "circular": _wrap,
}
"""Padding mode -> the position in the axis that a position outside of it copies."""
