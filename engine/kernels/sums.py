"""Sums of many float32 numbers, as close to the exact ones as PyTorch's.

numpy adds numbers that are contiguous in pairs, and pairs of these, but others one after the other: the mean of
40,000 rows would be off in its fourth digit. PyTorch adds all in a tree of partial sums, running sums in float64.
"""

from collections.abc import Sequence
from math import prod

import numpy as np

from engine.dtypes import Array

_FEW = 128
"""Numbers that lose no digit to speak of where they are added one after the other."""
_WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}


def total(x: Array, axes: Sequence[int], keepdims: bool = False) -> Array:
    """Return the sums over some axes, in the dtype of `x`."""
    wide = None if _is_added_in_pairs(x, axes) else _WIDE.get(x.dtype)
    computed = np.sum(x, tuple(axes), wide or x.dtype, keepdims=keepdims)
    return np.asarray(computed, x.dtype)


def running(function: np.ufunc, x: Array, axis: int) -> Array:
    """Return what a ufunc of two operands makes of all elements up to each one along an axis, in the dtype of `x`."""
    return np.asarray(function.accumulate(x, axis, _WIDE.get(x.dtype, x.dtype)), x.dtype)


def _is_added_in_pairs(x: Array, axes: Sequence[int]) -> bool:
    """Return whether the numbers of a sum are few, or are contiguous."""
    if x.size <= _FEW or prod(x.shape[axis] for axis in axes) <= _FEW:
        return True
    are_last = {axis % x.ndim for axis in axes} == set(range(x.ndim - len(axes), x.ndim))
    return are_last and x.flags.c_contiguous
