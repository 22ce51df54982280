"""The wire format of protobuf, as far as tensors are found and written in it.

After "Encoding", protobuf.dev/programming-guides/encoding. A parser of messages copies each tensor twice, and takes
many times as much memory as some messages have bytes; here nothing is copied, and fields are counted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from engine import Array
from service.errors import ServiceError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; the two others delimit groups, which no message here has."""
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_VARINT_BYTES = 10
"""Most bytes of a varint: seven bits in each, 64 in all."""
_PIECE_BYTES = 1 << 16
"""Bytes of a packed field that are read at a time: what is computed of each takes many times its size."""


class Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: its number.
        kind: its wire type.
        value: its bytes, without tag and length.
        start: where its tag begins in the message.
        end: where it ends.
    """

    number: int
    kind: int
    value: memoryview
    start: int
    end: int


def fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of a message, in their order.

    Raises:
        ServiceError: 400 `invalid_message`.
    """
    position, size = 0, len(message)
    while position < size:
        start = position
        tag, position = read_varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == BYTES:
            length, position = read_varint(message, position)
        elif kind == VARINT:
            length = read_varint(message, position)[1] - position
        elif kind in _FIXED_SIZES:
            length = _FIXED_SIZES[kind]
        else:
            raise malformed(f"wire type {kind} at byte {start} is not known")
        end = position + length
        if end > size:
            raise malformed(f"the field at byte {start} has {length} bytes, {size - position} are left")
        if number == 0:
            raise malformed(f"the field at byte {start} has the number 0")
        yield Field(number, kind, message[position:end], start, end)
        position = end


def read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the varint at a position, and where it ends.

    Raises:
        ServiceError: 400 `invalid_message`.
    """
    value = shift = 0
    for index in range(position, min(position + _VARINT_BYTES, len(message))):
        byte = message[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
    raise malformed(f"the number at byte {position} does not end")


def count_varints(packed: memoryview) -> int:
    """Return how many varints a packed field has."""
    return int(np.count_nonzero(np.frombuffer(packed, np.int8) >= 0))


def read_varints(packed: memoryview) -> Array:
    """Return the varints of a packed field, as uint64 of shape (count,); bits beyond the 64th are dropped.

    Raises:
        ServiceError: 400 `invalid_message`.
    """
    if len(packed) and packed[-1] >= 0x80:
        raise malformed("the last number of a packed field does not end")
    values = np.zeros(count_varints(packed), np.uint64)
    data = np.frombuffer(packed, np.uint8)
    position = done = 0
    while position < data.size:
        ends = np.flatnonzero(data[position : position + _PIECE_BYTES] < 0x80)
        if not ends.size:
            raise malformed(f"a number of a packed field has more than {_VARINT_BYTES} bytes")
        _read_piece(data[position : position + ends[-1] + 1], ends, values[done : done + ends.size])
        position += int(ends[-1]) + 1
        done += ends.size
    return values


def _read_piece(data: Array, ends: Array, values: Array) -> None:
    """Read varints that end at the given indices of their bytes into an array of zeros."""
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    longest = int(lengths.max())
    if longest > _VARINT_BYTES:
        raise malformed(f"a number of a packed field has {longest} bytes; {_VARINT_BYTES} are the most")
    for index in range(longest):
        has = lengths > index
        values[has] |= (data[starts[has] + index] & 0x7F).astype(np.uint64) << np.uint64(7 * index)


def varint(value: int) -> bytes:
    """Return a whole number from 0 as a varint."""
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def prefix(number: int, size: int) -> bytes:
    """Return what stands before the bytes of a field: its tag and its length."""
    return varint(number << 3 | BYTES) + varint(size)


def malformed(problem: str) -> ServiceError:
    """Return the error for bytes that are no message."""
    return ServiceError(400, "invalid_message", f"the message is malformed: {problem}")
