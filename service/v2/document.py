"""Reads JSON bodies and checks their members."""

from typing import Any

import orjson

from service.codec.json_document import parse_document, syntax_problem
from service.config.limits import Limits
from service.errors import ServiceError, shown

_LIMITS = Limits()
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Document = dict[str, Any]


def parse_object(
    data: bytes | bytearray | memoryview, what: str = "the body", limits: Limits = _LIMITS
) -> Document:
    """Read a JSON object.

    Bare NaN, Infinity and -Infinity are accepted although they are not JSON, because clients write them.

    Raises:
        ServiceError: 400 `invalid_json`, and as `parse_document`.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    try:
        document = parse_document(_joined(data), limits, takes_bare_names=True)
    except orjson.JSONDecodeError as error:
        details = {"line": error.lineno, "column": error.colno}
        raise ServiceError(
            400, "invalid_json", f"{what} is not JSON: {syntax_problem(error)}", details
        ) from error
    if not isinstance(document, dict):
        raise invalid(f"{what} is not a JSON object")
    return document


def parse_optional_object(data: bytes | bytearray, what: str = "the body") -> Document:
    """Read a JSON object; an empty body is read as an empty object.

    Raises:
        ServiceError: 400 `invalid_json`.
    """
    return parse_object(data, what) if data.strip() else {}


def member(document: Document, key: str, kind: type, place: str) -> Any:
    """Return a member of an object, after checking its type; None if it is missing or null.

    Raises:
        ServiceError: 400 `invalid_request`.
    """
    value = document.get(key)
    if value is None or type(value) is kind:
        return value
    words = {str: "a string", int: "a whole number", bool: "true or false", list: "a list", dict: "an object"}
    raise bad_request(f"{place}{key} is {shown(value)}; expected {words[kind]}")


def invalid(message: str) -> ServiceError:
    """Return the error for bytes that are not the expected JSON."""
    return ServiceError(400, "invalid_json", message)


def bad_request(message: str) -> ServiceError:
    """Return the error for a document with missing or wrong members."""
    return ServiceError(400, "invalid_request", message)


def _joined(data: bytes | bytearray | memoryview) -> bytes | bytearray:
    """Return the bytes that a view shows, without a byte order mark; all of a buffer is not copied."""
    if isinstance(data, memoryview):
        whole = data.obj
        data = whole if isinstance(whole, bytes | bytearray) and len(whole) == len(data) else bytes(data)
    return data[len(_BYTE_ORDER_MARK) :] if data.startswith(_BYTE_ORDER_MARK) else data
