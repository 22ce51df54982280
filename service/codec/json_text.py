"""Serialises values that may hold arrays as JSON; large ones in pieces.

The serialiser holds the GIL until it has written everything. Large arrays and long lists are therefore
written some thousands of elements at a time, and their pieces are never joined.
"""

import os
import re
from collections.abc import Iterable, Iterator
from math import isfinite, isnan
from typing import Any

import numpy as np
import orjson

from engine import Array
from service.config.limits import Limits
from service.decoding import leave_large

PIECE_ELEMENTS = 1 << 13
"""Maximum elements of an array that are written at once."""
_PIECE_ITEMS = 256
"""Maximum items of a list that are written at once."""
_JOINED_BYTES = 1 << 16
"""Pieces are joined up to this length: to copy them costs less than to send each."""
LARGE_BYTES = 2 << 20
"""Maximum bytes of arrays that are written where they are, and whose size as JSON is not estimated before that."""
_SAMPLES = 1 << 10
"""Elements of an array that show about how many bytes each has as JSON."""
_SURELY = 0.8
"""The share of the estimated bytes that a response surely has."""


def dump_json(value: Any) -> bytes:
    """Serialise a value of dicts, lists, arrays and plain values as JSON in UTF-8."""
    return orjson.dumps(value, default=_array_text)


def dump_pieces(value: Any, limits: Limits | None = None) -> list[bytes]:
    """Serialise a value as `dump_json` does, in pieces that are to be sent one after the other.

    Args:
        value: of dicts, lists, arrays and plain values.
        limits: how large a response may be; None for any size.

    Raises:
        NeedsDecoderError: arrays are large, and this thread leaves those to others.
        ServiceError: 413 `response_too_large`, as soon as the pieces are larger than a response may be, or at
            once where samples of large arrays show that they will be.
    """
    if isinstance(value, list) and len(value) > _PIECE_ITEMS:
        steps = (value[start : start + _PIECE_ITEMS] for start in range(0, len(value), _PIECE_ITEMS))
        return join_small((piece for step in _joined(map(dump_pieces, steps)) for piece in step), limits)
    large: list[Array] = []

    def write(item: Any) -> orjson.Fragment | str:
        if isinstance(item, np.ndarray) and item.size > PIECE_ELEMENTS:
            large.append(item)
            return _MARK
        return _array_text(item)

    text = orjson.dumps(value, default=write)
    if not large:
        return [text]
    size = sum(array.nbytes for array in large)
    leave_large(size, LARGE_BYTES)
    if limits is not None and size > LARGE_BYTES:
        limits.check_text(int(_SURELY * sum(map(_estimated_bytes, large))))
    return join_small(_filled(text, large), limits)


def join_small(pieces: Iterable[bytes], limits: Limits | None) -> list[bytes]:
    """Return pieces, the small ones joined with those before them, after checking how many bytes they have.

    Raises:
        ServiceError: 413 `response_too_large`.
    """
    joined, size = [b""], 0
    for piece in pieces:
        size += len(piece)
        if limits is not None:
            limits.check_response(size)
        if len(joined[-1]) + len(piece) <= _JOINED_BYTES:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _joined(lists: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
    """Yield the pieces of lists that together are one list."""
    lead = b"["
    for pieces in lists:
        pieces[0] = lead + pieces[0][1:]
        pieces[-1] = pieces[-1][:-1]
        yield pieces
        lead = b","
    yield [b"]"]


def _filled(text: bytes, large: list[Array]) -> Iterator[bytes]:
    """Yield a text with arrays in the places of their marks."""
    for index, part in enumerate(re.split(rb'"%b"' % _MARK.encode(), text)):
        if index:
            yield from _array_pieces(large[index - 1])
        yield part


_MARK = f"array-{os.urandom(16).hex()}"
"""Stands for a large array in the text around it; no client can guess it, and none ever sees it."""


def _array_pieces(array: Array) -> Iterator[bytes]:
    """Yield an array as nested lists, some rows or elements at a time."""
    inner = array[0].size if array.ndim > 1 else 1
    if inner > PIECE_ELEMENTS:
        for index, item in enumerate(array):
            yield b"," if index else b"["
            yield from _array_pieces(item)
        yield b"]"
        return
    rows = PIECE_ELEMENTS // max(inner, 1)
    steps = (_array_bytes(array[start : start + rows]) for start in range(0, len(array), rows))
    for pieces in _joined([step] for step in steps):
        yield from pieces


def _estimated_bytes(array: Array) -> float:
    """Return about how many bytes a large array has as JSON, judged by some of its elements."""
    places = np.random.default_rng(array.size).integers(
        0, array.size, _SAMPLES
    )  # equal ones for equal requests
    return len(_array_bytes(array.flat[places])) / _SAMPLES * array.size


def _array_bytes(array: Array) -> bytes:
    """Return an array as JSON."""
    return orjson.dumps(json_data(array), option=orjson.OPT_SERIALIZE_NUMPY)


def _array_text(value: Any) -> orjson.Fragment:
    """Return an array or a number of numpy as JSON.

    Raises:
        TypeError: the value is neither.
    """
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError(f"{type(value).__name__} cannot be written as JSON")
    return orjson.Fragment(_array_bytes(np.asarray(value)))


NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Names of the numbers that JSON cannot represent."""


def json_number(value: float | None) -> float | str | None:
    """Return a number, or its name if it is not finite."""
    if value is None or isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_data(array: Array) -> Any:
    """Return what the serialiser turns into nested lists of the array's shape.

    That is the array itself, in C order: no Python object is made per element. Only an array that holds NaN or
    infinities becomes lists, with names in their place. Complex elements become pairs [re, im].
    """
    if array.dtype.kind == "c":
        parts = np.empty((*array.shape, 2), array.real.dtype)
        parts[..., 0], parts[..., 1] = array.real, array.imag
        return json_data(parts)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return _with_names(array)
    if array.ndim == 0:
        return array.item()
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _with_names(array: Array) -> Any:
    values = array.astype(object)
    for name, chosen in (
        ("NaN", np.isnan(array)),
        ("Infinity", np.isposinf(array)),
        ("-Infinity", np.isneginf(array)),
    ):
        values[chosen] = name
    return values.tolist()
