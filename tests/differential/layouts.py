"""Ways in which an input may lie in memory."""

from collections.abc import Callable

import numpy as np

from engine.dtypes import Array


def _contiguous(array: Array) -> Array:
    return array.copy()


def _transposed(array: Array) -> Array:
    """Row by row from the last axis to the first."""
    return array.T.copy().T


def _strided(array: Array) -> Array:
    """Every other element of a larger array, along every axis."""
    whole = np.zeros([2 * extent for extent in array.shape], array.dtype)
    part = whole[(slice(None, None, 2),) * array.ndim]
    part[...] = array
    return part


def _backwards(array: Array) -> Array:
    """With negative strides along every axis."""
    places = (slice(None, None, -1),) * array.ndim
    return array[places].copy()[places]


def _unaligned(array: Array) -> Array:
    """One byte beside where its elements should begin."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    result: Array = memory[1:].view(array.dtype).reshape(array.shape)
    result[...] = array
    return result


def _read_only(array: Array) -> Array:
    result = array.copy()
    result.flags.writeable = False
    return result


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "strided": _strided,
    "backwards": _backwards,
    "unaligned": _unaligned,
    "read-only": _read_only,
}
"""Name -> what makes a copy of an array that lies so."""
