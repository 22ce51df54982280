"""Scattering of values to indices: assigned, or combined with the existing values."""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.dtypes import Array

IndexKey = tuple[Any, ...]
"""An index of numpy."""

_UFUNCS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "mean": np.add,
    "amax": np.maximum,
    "amin": np.minimum,
}

REDUCTIONS = tuple(_UFUNCS)
"""Names of the ways to combine values, as PyTorch's scatter_reduce and index_reduce take them."""


def along(index: Array, axis: int) -> IndexKey:
    """Return the key of the elements that `index` names along an axis, at its own places in all others."""
    key: list[Any] = list(np.indices(index.shape, sparse=True))
    key[axis] = index
    return tuple(key)


def slices(index: Array, axis: int) -> IndexKey:
    """Return the key of the whole slices that `index`, of one dimension, names along an axis."""
    return (slice(None),) * axis + (index,)


def combine(target: Array, key: IndexKey, values: Array, reduction: str, *, include_self: bool) -> Array:
    """Return a copy of `target` in which the elements at `key` are reduced with the values that go there.

    Args:
        target: what is copied.
        key: where the values go; the same place may come up several times.
        values: in the dtype of `target`, in the shape that the key picks.
        reduction: one of `REDUCTIONS`. The mean of integers is rounded down.
        include_self: whether what is in `target` counts as one of the values.
    """
    result = target.copy()
    if not include_self:
        result[key] = _neutral(reduction, target.dtype)
    _UFUNCS[reduction].at(result, key, values)
    if reduction != "mean":
        return result
    counts = np.full(target.shape, int(include_self))
    np.add.at(counts, key, 1)
    divide: Callable[..., Array] = np.floor_divide if target.dtype.kind in "iu" else np.true_divide
    divided: Array = divide(result, np.maximum(counts, 1).astype(target.dtype))
    return divided


def _neutral(reduction: str, dtype: np.dtype[Any]) -> Any:
    """Return what changes no value that it is reduced with."""
    if reduction in ("sum", "mean", "prod"):
        return dtype.type(reduction == "prod")
    if dtype.kind == "f":
        return dtype.type(-np.inf if reduction == "amax" else np.inf)
    if dtype.kind == "b":
        return dtype.type(reduction == "amin")
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if reduction == "amax" else limits.max)
