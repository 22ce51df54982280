"""Views with custom strides, checked to stay within the memory."""

from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.errors import ArgumentError


def strided(x: Array, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Array:
    """Return the view of the storage of `x` that `torch.as_strided` gives.

    Args:
        x: array of any shape; only where its memory lies matters.
        size: shape of the view.
        stride: distance between neighbours along each dimension, in elements, none of them negative.
        offset: offset of the first element, in elements from the start of the storage; None starts where `x` does.

    Raises:
        ArgumentError: the view would reach outside the storage.
    """
    memory = _storage(x)
    first = (_address(x) - _address(memory)) // x.itemsize if offset is None else offset
    if 0 in size:
        return np.empty(size, x.dtype)
    last = first + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
    if last >= memory.size:
        raise ArgumentError(
            "size", f"reaches element {last}", f"at most {memory.size - 1}, the last there is"
        )
    strides = [step * x.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(memory[first:], size, strides, writeable=False)


def _storage(x: Array) -> Array:
    """Return the memory that `x` is a view of, as a vector in the order in which it lies."""
    owner = x
    while isinstance(owner.base, np.ndarray) and owner.base.dtype == x.dtype:
        owner = owner.base
    return owner.ravel("K")


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])
