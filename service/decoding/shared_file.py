"""The memory that a decoder process shares with the server: an anonymous file for the arrays of a result.

The process writes through a mapping; the server reads it as a file. So no truncation can crash the server, and what it
validates is a copy that the process cannot change.
"""

import mmap
import os
import tempfile
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from engine import Array

_ALIGNMENT = 64
_KINDS = frozenset("fiubc")
MAX_RANK = 64
"""Maximum dimensions of an array, as numpy has it."""


def create() -> int:
    """Return the descriptor of a new file, which has no name and no bytes.

    Raises:
        OSError: it cannot be created.
    """
    if hasattr(os, "memfd_create"):  # in no directory, whose space may be limited
        return os.memfd_create("decoded")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def room_for(arrays: int, size: int) -> int:
    """Return how many bytes the file needs for some arrays of so many bytes together."""
    return size + (arrays + 1) * _ALIGNMENT


def write(descriptor: int, room: int, arrays: Sequence[Array]) -> list[list[Any]]:
    """Write arrays; returns their dtypes, shapes and places, for `read`.

    Raises:
        ValueError: they need more than `room` bytes.
    """
    places, start = [], 0
    if not arrays:
        return []
    with mmap.mmap(descriptor, room) as memory:
        for array in arrays:
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            if start + len(data) > room:
                raise ValueError(f"arrays of more than {room} bytes")
            memory[start : start + len(data)] = data
            places.append([array.dtype.str, list(array.shape), start])
            start += -(-len(data) // _ALIGNMENT) * _ALIGNMENT
    return places


def read(descriptor: int, room: int, places: object) -> list[Array]:
    """Read the arrays that `write` describes.

    Raises:
        ValueError: the description is invalid.
        EOFError: the file is shorter than that.
    """
    if not isinstance(places, list):
        raise ValueError("no list of arrays")  # noqa: TRY004  # what it holds, not its type, is wrong
    return [_read(descriptor, room, *_place(entry)) for entry in places]


def _place(entry: object) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    match entry:
        case [str(name), [*shape], int(start)] if len(shape) <= MAX_RANK and start >= 0:
            dtype = np.dtype(name) if name[1:2] in _KINDS and len(name) <= 4 else None
            dims = tuple(dim for dim in shape if isinstance(dim, int) and dim >= 0)
            if dtype is not None and len(dims) == len(shape):
                return dtype, dims, start
    raise ValueError(f"an invalid array: {repr(entry)[:80]}")


def _read(descriptor: int, room: int, dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> Array:
    size = prod(shape) * dtype.itemsize
    if start + size > room:
        raise ValueError(f"an array of {size} bytes at {start}; at most {room}")
    array = np.empty(shape, dtype)
    if not size:
        return array
    rest = array.reshape(-1).view(np.uint8).data
    with open(descriptor, "rb", buffering=0, closefd=False) as file:
        file.seek(start)
        while rest:
            count = file.readinto(rest)
            if not count:
                raise EOFError
            rest = rest[count:]
    return array
