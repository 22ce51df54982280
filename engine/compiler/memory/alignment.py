"""Aligned memory and its addresses."""

import mmap
from collections.abc import Sequence
from ctypes import addressof, c_char
from math import prod

import numpy as np

from engine.dtypes import Array

ALIGNMENT = 64
"""Bytes that buffers are aligned to: the widest vector, and a cache line."""
WORD = np.dtype(np.float32).itemsize
"""Bytes of an element."""
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_OWN_PAGES = 1 << 18
"""Bytes from which on memory comes from the system itself."""


def aligned_empty(size: int) -> Array:
    """Return bytes that begin at a multiple of `ALIGNMENT`.

    Many of them come from the system and go back to it when they are freed: from the heap, which others share, they
    would not.

    Raises:
        MemoryError: there is not so much memory.
    """
    if size >= _OWN_PAGES:
        try:
            return np.frombuffer(mmap.mmap(-1, size, **_PRIVATE), np.uint8)
        except OSError as error:
            raise MemoryError(f"unable to allocate {size} bytes") from error
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -address_of(memory) % ALIGNMENT
    return memory[start : start + size]


def aligned_zeros(shape: Sequence[int]) -> Array:
    """Return float32 zeros in a shape, aligned for vectors."""
    memory = aligned_empty(prod(shape) * WORD).view(np.float32)
    memory[...] = 0.0
    return memory.reshape(shape)


def aligned(array: Array) -> Array:
    """Return float32 elements row by row, aligned for vectors: the array itself, or a copy."""
    if array.flags.c_contiguous and address_of(array) % ALIGNMENT == 0:
        return array
    memory = aligned_empty(array.size * WORD).view(np.float32).reshape(array.shape)
    memory[...] = array
    return memory


def row_by_row(array: Array) -> Array:
    """Return a float32 array whose elements lie row by row where the processor likes to read them."""
    flags = array.flags
    if array.dtype == np.float32 and flags.c_contiguous and flags.aligned:
        return array
    return np.require(array, np.float32, ("C", "A"))


def address_of(array: Array) -> int:
    """Return where an array's elements begin in memory."""
    if array.flags.carray and array.size:  # as quick as it gets, but only for memory that may be written to
        return addressof(c_char.from_buffer(array))  # type: ignore[arg-type]  # numpy declares it from 3.12 on
    return int(array.__array_interface__["data"][0])
