"""The wire format of protobuf, as far as raw tensors are found and written in it.

After "Encoding", protobuf.dev/programming-guides/encoding. protobuf copies each tensor twice, and takes 44 times the
memory of a message of empty inputs: raw tensors never reach it, and what does is small and has few fields.
"""

from collections.abc import Iterator
from typing import NamedTuple

from service.config.limits import too_large
from service.errors import ServiceError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; the two others delimit groups, which no message here has."""
_FIXED_SIZES = {FIXED64: 8, FIXED32: 4}
_VARINT_BYTES = 10
"""Maximum bytes of a varint: seven bits in each, 64 in all."""
_INPUTS, _RAW = 5, 7
"""Numbers of fields of a `ModelInferRequest`."""
_STRINGS = (_INPUTS, 5, 8)
"""Numbers of the fields in which the strings of an input lie: those of the request, the input and its contents."""
_BRIEF_BYTES = 1 << 14
"""Maximum bytes of a head whose fields are not counted: it takes little memory whatever it holds."""
_MAX_FIELDS = 1 << 13
"""Maximum fields of a request, those of its inputs and their contents among them: packed numbers are one."""
_MAX_HEAD_BYTES = 2 << 20
"""Maximum bytes of a request besides raw tensors and strings: protobuf holds the GIL for tens of milliseconds."""


class _Field(NamedTuple):
    """A field of a message.

    Attributes:
        number: its number.
        kind: its wire type.
        value: its bytes, without tag and length.
        whole: its bytes, with both.
    """

    number: int
    kind: int
    value: memoryview
    whole: memoryview


def split(data: bytes) -> tuple[bytes, list[memoryview]]:
    """Return a request without its raw tensors, for protobuf to parse, and the raw tensors in the order of the inputs.

    Raises:
        ServiceError: 400 `invalid_message`, 413 `too_many_values`.
    """
    kept: list[memoryview] = []
    raw: list[memoryview] = []
    for count, field in enumerate(_fields(memoryview(data)), 1):
        _check_count(count)
        if field.number == _RAW and field.kind == BYTES:
            raw.append(field.value)
        else:
            kept.append(field.whole)
    head = b"".join(kept)
    if len(head) > _BRIEF_BYTES:
        size = len(head) - _measure(memoryview(head), _STRINGS)[1]
        if size > _MAX_HEAD_BYTES:
            place = "the message, without raw_input_contents and bytes_contents,"
            raise too_large("too_many_values", place, size, _MAX_HEAD_BYTES, "bytes")
    return head, raw


def _fields(message: memoryview) -> Iterator[_Field]:
    """Yield the fields of a message, in their order.

    Raises:
        ServiceError: 400 `invalid_message`.
    """
    position, size = 0, len(message)
    while position < size:
        start = position
        tag, position = _read_varint(message, position)
        number, kind = tag >> 3, tag & 7
        if kind == BYTES:
            length, position = _read_varint(message, position)
        elif kind == VARINT:
            length = _read_varint(message, position)[1] - position
        elif kind in _FIXED_SIZES:
            length = _FIXED_SIZES[kind]
        else:
            raise malformed(f"wire type {kind} at byte {start} is not known")
        end = position + length
        if end > size:
            raise malformed(f"the field at byte {start} has {length} bytes, {size - position} are left")
        if number == 0:
            raise malformed(f"the field at byte {start} has the number 0")
        yield _Field(number, kind, message[position:end], message[start:end])
        position = end


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


def _read_varint(message: memoryview, position: int) -> tuple[int, int]:
    """Return the varint at a position, and where it ends."""
    value = shift = 0
    for index in range(position, min(position + _VARINT_BYTES, len(message))):
        byte = message[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, index + 1
        shift += 7
    raise malformed(f"the number at byte {position} does not end")


def _measure(message: memoryview, path: tuple[int, ...]) -> tuple[int, int]:
    """Return how many fields a message has, with those on a path in it, and how many bytes those at its end have."""
    count = size = 0
    for field in _fields(message):
        count += 1
        if field.kind == BYTES and field.number == path[0]:
            inside = _measure(field.value, path[1:]) if path[1:] else (0, len(field.value))
            count, size = count + inside[0], size + inside[1]
        _check_count(count)
    return count, size


def _check_count(count: int) -> None:
    if count > _MAX_FIELDS:
        raise too_large("too_many_values", "the message", count, _MAX_FIELDS, "fields")
