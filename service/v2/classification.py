"""The classification extension: instead of a tensor, its largest elements as strings `value:index[:label]`."""

from collections.abc import Sequence
from math import prod

import numpy as np

from engine import Array
from service.errors import ServiceError


def classify(array: Array, count: int, labels: Sequence[str] | None, name: str) -> Array:
    """Describe the largest elements of each item of a batch, largest first and NaN last.

    An item whose elements are all NaN is refused: the order of its classes would mean nothing, and the protocol has no
    place for an item without classes.

    Args:
        array: the output; its first dimension is the batch if it has more than one.
        count: how many elements; all of them if there are fewer.
        labels: names of the classes, in order of index; not used if their number differs from that of the classes.
        name: the output's name, for messages.

    Returns:
        Array of `str` objects, (batch, count), or (count,) for an output of one dimension.

    Raises:
        ServiceError: 400 `no_classes`.
    """
    if array.dtype.kind not in "fiu" or array.ndim == 0:
        message = (
            f"output {name!r} is {array.dtype} of shape {list(array.shape)}; only numbers can be classified"
        )
        raise ServiceError(400, "no_classes", message, {"output": name})
    batch = array.shape[0] if array.ndim > 1 else 1
    scores = array.reshape(batch, prod(array.shape[1:]) if array.ndim > 1 else array.size)
    if labels is not None and len(labels) != scores.shape[1]:
        labels = None
    if scores.size and array.dtype.kind == "f":
        _check_numbers(scores, name)
    order = np.empty((batch, min(count, scores.shape[1])), np.intp)
    for row, row_scores in enumerate(scores):
        order[row] = _largest(row_scores, count)
    best = np.take_along_axis(scores, order, axis=1)
    strings = np.empty(order.shape, object)
    for row, (indices, values) in enumerate(zip(order.tolist(), best, strict=True)):
        strings[row] = [
            _word(str(value), index, labels) for index, value in zip(indices, values, strict=True)
        ]
    return strings if array.ndim > 1 else strings[0]


def _check_numbers(scores: Array, name: str) -> None:
    unknown = np.flatnonzero(np.isnan(scores).all(axis=1))
    if unknown.size:
        index = int(unknown[0])
        message = (
            f"item {index} of output {name!r} has no score that is a number: it has no classes; "
            "ask for the output itself to see it"
        )
        raise ServiceError(400, "no_classes", message, {"output": name, "item": index})


def _largest(row: Array, count: int) -> Array:
    """Return the indices of the largest elements, from the largest down, equal ones by index, NaN last."""
    is_float = row.dtype.kind == "f"
    keys = np.where(np.isnan(row), -np.inf, row) if is_float else row
    candidates = np.arange(row.size)
    if count < row.size:  # sorting all elements takes many times as long
        candidates = np.flatnonzero(keys >= np.partition(keys, row.size - count)[row.size - count])
    order = candidates[::-1][np.argsort(keys[candidates][::-1], kind="stable")][::-1]
    if is_float:
        order = order[np.argsort(np.isnan(row[order]), kind="stable")]
    return np.asarray(order[:count])


def _word(value: str, index: int, labels: Sequence[str] | None) -> str:
    return f"{value}:{index}" if labels is None else f"{value}:{index}:{labels[index]}"
