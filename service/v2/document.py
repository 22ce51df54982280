"""Reads JSON bodies and checks their members."""

import json
from typing import Any

import orjson

from service.errors import ServiceError, shown

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BARE_NAMES = (b"NaN", b"Inf")

Document = dict[str, Any]


def parse_object(data: bytes | bytearray | memoryview, what: str = "the body") -> Document:
    """Read a JSON object.

    Bare NaN, Infinity and -Infinity are accepted although they are not JSON, because clients write them.

    Raises:
        ServiceError: 400 `invalid_json`.
    """
    if bytes(data[:3]) == _BYTE_ORDER_MARK:
        data = data[3:]
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if not _has_bare_name(data, error.pos):
            raise _not_json(what, error) from error
        document = _parse_leniently(data, what)
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


def _has_bare_name(data: bytes | bytearray | memoryview, position: int) -> bool:
    around = bytes(data[max(0, position - 12) : position + 12])
    return any(name in around for name in _BARE_NAMES)


def _parse_leniently(data: bytes | bytearray | memoryview, what: str) -> Any:
    try:
        document = json.loads(str(data, "utf-8"))
        # refuses lone surrogates, as orjson does: no answer could hold them
        json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise _not_json(what, error) from error
    return document


def _not_json(what: str, error: Exception) -> ServiceError:
    details = {}
    if isinstance(error, json.JSONDecodeError):
        details = {"line": error.lineno, "column": error.colno}
    return ServiceError(400, "invalid_json", f"{what} is not JSON: {error}", details)
