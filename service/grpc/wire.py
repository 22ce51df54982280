"""The wire format of protobuf, as far as raw tensors are found and written in it.

After "Encoding", protobuf.dev/programming-guides/encoding. protobuf copies each tensor twice, and takes 44 times the
memory of a message of empty inputs: raw tensors never reach it, and what does is small and has few fields.
"""

from collections.abc import Iterator
from typing import NamedTuple

from service.errors import ServiceError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; the two others delimit groups, which no message here has."""
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_VARINT_BYTES = 10
"""Maximum bytes of a varint: seven bits in each, 64 in all."""


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
