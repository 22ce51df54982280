"""Splits `multipart/form-data` bodies into parts (RFC 7578)."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from service.errors import ServiceError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_PARTS = 256
_PIECE_BYTES = 1 << 18
"""Bytes of a form that are parsed at a time."""

# a malformed form is the client's error: it gets a response, and is not logged as a fault of the server
logging.getLogger("python_multipart.multipart").setLevel(logging.CRITICAL)


@dataclass(slots=True)
class Part:
    """One part of a form.

    Attributes:
        name: name of the field, empty where it has none.
        is_file: the part has a file name.
        data: its bytes.
    """

    name: str = ""
    is_file: bool = False
    data: bytes = b""


@dataclass(slots=True)
class _Collector:
    """Collects the parser's events."""

    parts: list[Part] = field(default_factory=list)
    ended: bool = False
    _chunks: list[bytes] = field(default_factory=list)
    _header: bytes = b""
    _value: bytes = b""

    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self.on_part_begin,
            "on_header_field": self.on_header_field,
            "on_header_value": self.on_header_value,
            "on_header_end": self.on_header_end,
            "on_part_data": self.on_part_data,
            "on_part_end": self.on_part_end,
            "on_end": self.on_end,
        }

    def on_part_begin(self) -> None:
        if len(self.parts) == MAX_PARTS:
            raise invalid(f"the form has more than {MAX_PARTS} parts")
        self.parts.append(Part())
        self._chunks = []

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def on_header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self.parts[-1].name = options.get(b"name", b"").decode("utf-8", "replace")
            self.parts[-1].is_file = b"filename" in options
        self._header = self._value = b""

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._chunks.append(data[start:end])

    def on_part_end(self) -> None:
        self.parts[-1].data = b"".join(self._chunks)
        self._chunks = []

    def on_end(self) -> None:
        self.ended = True


def parse_multipart(body: bytes, boundary: str | None) -> list[Part]:
    """Split a form into its parts.

    Args:
        body: the form.
        boundary: parameter of the `Content-Type`.

    Raises:
        ServiceError: 400 `invalid_multipart`.
    """
    if not boundary:
        raise invalid("the Content-Type has no boundary")
    collector = _Collector()
    try:
        parser = MultipartParser(boundary.encode("latin-1", "replace"), collector.callbacks())
        for start in range(0, len(body), _PIECE_BYTES):
            parser.write(body[start : start + _PIECE_BYTES])  # all at once, it would be copied
    except FormParserError as error:
        raise invalid(f"the form cannot be read: {error}") from error
    if not collector.ended:
        raise invalid("the form ends before its last boundary")
    return collector.parts


def invalid(message: str) -> ServiceError:
    """Return the error for a malformed form."""
    return ServiceError(400, "invalid_multipart", message[:300], {"expected": "multipart/form-data"})
