"""A `ModelInferRequest`, split into what describes its tensors and the tensors themselves, none of which is copied."""

from typing import NamedTuple

from service.config.limits import too_large
from service.errors import ServiceError
from service.grpc.wire import BYTES, Field, fields, malformed, prefix

_MODEL_NAME, _MODEL_VERSION, _ID, _INPUTS, _RAW = 1, 2, 3, 5, 7
"""Numbers of fields of a `ModelInferRequest`."""
_CONTENTS = 5
"""Number of a field of an `InferInputTensor`."""
_MOST_FIELDS = 1 << 13
"""Most fields of a request and its inputs together, tensors' elements not counted."""
_MOST_HEAD_BYTES = 1 << 18
"""Most bytes of a request besides its tensors."""


class InferMessage(NamedTuple):
    """A request.

    Attributes:
        model: the name of the model.
        version: its version; empty where none is named.
        id: the client's id of the request; empty where there is none.
        head: the message without its id and its tensors. Requests that differ in these alone have equal heads.
        raw: the raw contents, in the order of the inputs; empty where the inputs have contents of their own.
        contents: of each input its own contents, as the bytes of an `InferTensorContents`; None where it has none.
    """

    model: str
    version: str
    id: str
    head: bytes
    raw: tuple[memoryview, ...]
    contents: tuple[memoryview | None, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each of the raw contents."""
        return tuple([len(part) for part in self.raw])

    @property
    def contents_bytes(self) -> int:
        """Bytes of the inputs' own contents."""
        return sum(len(part) for part in self.contents if part is not None)


def split(data: bytes) -> InferMessage:
    """Split a request.

    Raises:
        ServiceError: 400 `invalid_message`, 413 `too_many_values`.
    """
    message = memoryview(data)
    names = {_MODEL_NAME: b"", _MODEL_VERSION: b"", _ID: b""}
    kept: list[bytes | memoryview] = []
    raw: list[memoryview] = []
    contents: list[memoryview | None] = []
    count = 0
    for field in fields(message):
        count += 1
        is_bytes = field.kind == BYTES
        if is_bytes and field.number == _RAW:
            raw.append(field.value)
        elif is_bytes and field.number == _INPUTS:
            inside = _split_input(field, message)
            kept.append(inside.head)
            contents.append(inside.contents)
            count += inside.fields
        else:
            if is_bytes and field.number in names:
                names[field.number] = bytes(field.value)
            if not (is_bytes and field.number == _ID):
                kept.append(message[field.start : field.end])
        if count > _MOST_FIELDS:
            raise too_large("too_many_values", "the message", count, _MOST_FIELDS, "fields")
    size = sum(map(len, kept))
    if size > _MOST_HEAD_BYTES:
        place = "the message, without its tensors,"
        raise too_large("too_many_values", place, size, _MOST_HEAD_BYTES, "bytes")
    model, version, own_id = (_text(names[number]) for number in (_MODEL_NAME, _MODEL_VERSION, _ID))
    return InferMessage(model, version, own_id, b"".join(kept), tuple(raw), tuple(contents))


class _InputParts(NamedTuple):
    """An input: its field without its contents, its contents, and how many fields it has."""

    head: bytes | memoryview
    contents: memoryview | None
    fields: int


def _split_input(field: Field, message: memoryview) -> _InputParts:
    kept: list[memoryview] = []
    contents: list[memoryview] = []
    count = 0
    for inner in fields(field.value):
        count += 1
        if inner.kind == BYTES and inner.number == _CONTENTS:
            contents.append(inner.value)
        else:
            kept.append(field.value[inner.start : inner.end])
        if count > _MOST_FIELDS:
            raise too_large("too_many_values", "an input", count, _MOST_FIELDS, "fields")
    if not contents:
        return _InputParts(message[field.start : field.end], None, count)
    # several messages in one field mean the one that their bytes make together
    whole = contents[0] if len(contents) == 1 else memoryview(b"".join(contents))
    head = b"".join(kept)
    return _InputParts(prefix(_INPUTS, len(head)) + head, whole, count)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise malformed("a name is not UTF-8") from error


def both_contents(name: str) -> ServiceError:
    """Return the error for a request with raw contents and contents of an input."""
    message = (
        f"input {name[:80]!r} has contents, but the request has raw_input_contents as well; send one of them"
    )
    return ServiceError(400, "invalid_request", message)
