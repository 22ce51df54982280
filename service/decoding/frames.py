"""The messages between the server and a decoder process: a JSON object, and bytes."""

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("<IQ")
"""Bytes of the object, and bytes that follow it."""
MAX_OBJECT = 1 << 20
"""Maximum bytes of an object."""


def write_frame(file: BinaryIO, head: Mapping[str, Any], data: bytes | memoryview = b"") -> None:
    """Write a message.

    Raises:
        OSError: nobody reads it.
    """
    text = json.dumps(head).encode()
    file.write(_LENGTHS.pack(len(text), len(data)) + text)
    file.write(data)
    file.flush()


def read_frame(file: BinaryIO, most: int) -> tuple[dict[str, Any], bytes]:
    """Read a message.

    Args:
        file: where it comes from.
        most: maximum bytes that may follow the object.

    Raises:
        EOFError: there is none, or it ends too early.
        ValueError: it is none, or too large.
    """
    size, length = _LENGTHS.unpack(_read(file, _LENGTHS.size))
    if size > MAX_OBJECT or length > most:
        raise ValueError(f"a message of {size} and {length} bytes; the maxima are {MAX_OBJECT} and {most}")
    head = json.loads(_read(file, size))
    if not isinstance(head, dict):
        raise ValueError("a message that is no object")  # noqa: TRY004  # what it holds, not its type, is wrong
    return head, _read(file, length)


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
