"""A `ModelInferRequest`, split into raw tensors, none of which is copied, and a head that protobuf parses."""

from service.config.limits import too_large
from service.grpc.wire import BYTES, fields

_INPUTS, _RAW = 5, 7
"""Numbers of fields of a `ModelInferRequest`."""
_STRINGS = (_INPUTS, 5, 8)
"""Numbers of the fields in which the strings of an input lie: those of the request, the input and its contents."""
_BRIEF_BYTES = 1 << 14
"""Maximum bytes of a head whose fields are not counted: it takes little memory whatever it holds."""
_MAX_FIELDS = 1 << 13
"""Maximum fields of a request, those of its inputs and their contents among them: packed numbers are one."""
_MAX_HEAD_BYTES = 8 << 20
"""Maximum bytes of a request besides raw tensors and strings."""


def split(data: bytes) -> tuple[bytes, list[memoryview]]:
    """Return a request without its raw tensors, for protobuf to parse, and the raw tensors in the order of the inputs.

    Raises:
        ServiceError: 400 `invalid_message`, 413 `too_many_values`.
    """
    message = memoryview(data)
    kept: list[memoryview] = []
    raw: list[memoryview] = []
    for count, field in enumerate(fields(message), 1):
        _check_count(count)
        if field.number == _RAW and field.kind == BYTES:
            raw.append(field.value)
        else:
            kept.append(message[field.start : field.end])
    head = b"".join(kept)
    if len(head) > _BRIEF_BYTES:
        size = len(head) - _measure(memoryview(head), _STRINGS)[1]
        if size > _MAX_HEAD_BYTES:
            place = "the message, without raw_input_contents and bytes_contents,"
            raise too_large("too_many_values", place, size, _MAX_HEAD_BYTES, "bytes")
    return head, raw


def _measure(message: memoryview, path: tuple[int, ...]) -> tuple[int, int]:
    """Return how many fields a message has, with those on a path in it, and how many bytes those at its end have."""
    count = size = 0
    for field in fields(message):
        count += 1
        if field.kind == BYTES and field.number == path[0]:
            inside = _measure(field.value, path[1:]) if path[1:] else (0, len(field.value))
            count, size = count + inside[0], size + inside[1]
        _check_count(count)
    return count, size


def _check_count(count: int) -> None:
    if count > _MAX_FIELDS:
        raise too_large("too_many_values", "the message", count, _MAX_FIELDS, "fields")
