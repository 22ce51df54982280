"""Parses JSON documents of any size without a long hold of the interpreter's lock.

The parser holds the lock until it has made all objects. From a large document, the arrays of numbers under the key
`data` and long plain strings are therefore cut out; each array becomes a `NumberText`, and only the rest is given to
the parser. What that rest may hold is bounded, and counted before it is parsed.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from service.codec.json_strings import find_strings
from service.codec.number_text import PIECE_BYTES, Bytes, NumberText, find_end
from service.config.limits import too_large
from service.heavy_work import check_wanted, turns_for

LARGE_BYTES = 1 << 16
"""Longest document that is parsed as it is."""
MAX_LISTS = 1 << 16
"""Most lists and objects of a large document, besides those that are cut out."""
MAX_VALUES = 1 << 18
"""Most commas of a large document, besides those that are cut out."""
MAX_BYTES = 16 << 20
"""Most bytes of a large document, besides what is cut out."""

_KEY = b'"data"'
_BARE_NAMES = (b"NaN", b"Inf")
_SPACES = b" \t\r\n"
_LEAD = 64
"""Most spaces around the colon and before the first number of an array that is cut out."""
_CUT_BYTES = 1 << 12
"""Shortest array that is cut out."""
_MAX_TRIES = 4096
"""Most places of the key that are examined."""


def parse_document(text: Bytes, *, takes_bare_names: bool = False) -> Any:
    """Parse a JSON document.

    Args:
        text: the document.
        takes_bare_names: whether bare NaN, Infinity and -Infinity are read, although they are not JSON.

    Returns:
        The document; in a large one, a list under the key `data` may be a `NumberText`.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
        ServiceError: 413 `too_many_values`.
    """
    if len(text) <= LARGE_BYTES:
        return _parse(text, takes_bare_names)
    with turns_for(len(text)):
        return _parse_large(text, takes_bare_names)


def _parse_large(text: Bytes, takes_bare_names: bool) -> Any:
    """Parse a document without its large arrays of numbers and its long strings, and put these back unparsed."""
    cuts = _find_cuts(text)
    _check_size(len(text) - sum(end - start for start, end in cuts))  # before it is copied
    mark = os.urandom(16).hex()  # no client can guess it and write it in an array's place
    rest = _without(text, cuts, mark)
    _check_counts(rest)
    try:
        document = _parse(rest, takes_bare_names)
    except orjson.JSONDecodeError as error:
        raise _moved(error, text, cuts, len(mark)) from error
    whole = {f"{mark}{index}": _whole(text, *cut, takes_bare_names) for index, cut in enumerate(cuts)}
    return _restored(document, whole) if whole else document


def _parse(text: Bytes, takes_bare_names: bool) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        around = bytes(text[max(0, error.pos - 12) : error.pos + 12])
        if not takes_bare_names or not any(name in around for name in _BARE_NAMES):
            raise
    try:
        document = json.loads(str(text, "utf-8"))
        # refuses lone surrogates, as orjson does: no answer could hold them
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise orjson.JSONDecodeError(error.msg, error.doc, error.pos) from error
    except (ValueError, RecursionError) as error:
        raise orjson.JSONDecodeError(str(error), "", 0) from error
    return document


def _moved(
    error: orjson.JSONDecodeError, text: Bytes, cuts: list[tuple[int, int]], mark_length: int
) -> orjson.JSONDecodeError:
    """Return an error of the text without the arrays that are cut out, with its place in the whole text."""
    position = error.pos
    for index, (start, end) in enumerate(cuts):
        if position <= start:
            break
        position += end - start - (mark_length + len(f'"{index}"'))
    return orjson.JSONDecodeError(error.msg, str(text[:position], "utf-8", "replace"), position)


def _find_cuts(text: Bytes) -> list[tuple[int, int]]:
    """Return where what is cut out begins and ends: large arrays of numbers, and long strings between them."""
    cuts: list[tuple[int, int]] = []
    position = 0
    for start, end in _find_arrays(text):
        cuts += [*find_strings(text, position, start), (start, end)]
        position = end
    return [*cuts, *find_strings(text, position, len(text))]


def _whole(text: Bytes, start: int, end: int, takes_bare_names: bool) -> NumberText | str:
    """Return what was cut out of a text."""
    if text[start : start + 1] == b"[":
        return NumberText(text, start, end, takes_bare_names)
    return str(memoryview(text)[start + 1 : end - 1], "ascii")


def _find_arrays(text: Bytes) -> list[tuple[int, int]]:
    """Return where the large arrays of numbers under the key `data` begin and end."""
    cuts: list[tuple[int, int]] = []
    position = tries = 0
    while position < len(text) and tries < _MAX_TRIES:
        check_wanted()
        # the search of the whole text at once would hold the lock
        window = min(len(text), position + PIECE_BYTES)
        found = text.find(_KEY, position, window)
        if found < 0:
            position = window if window == len(text) else window - len(_KEY) + 1
            continue
        position, tries = found + len(_KEY), tries + 1
        start = _array_start(text, position)
        if start is None:
            continue
        end = find_end(text, start)
        if end is None:
            break  # what follows is in a list that never ends
        if end - start >= _CUT_BYTES:
            cuts.append((start, end))
            position = end
    return cuts


def _array_start(text: Bytes, position: int) -> int | None:
    """Return where the array of numbers begins whose key ends at a position; None where the value is something else."""
    head = bytes(text[position : position + _LEAD])
    value = head.lstrip(_SPACES)
    if not value.startswith(b":"):
        return None
    value = value[1:].lstrip(_SPACES)
    if not value.startswith(b"["):
        return None
    first = value.lstrip(b"[" + _SPACES)
    is_number = first[:1] in (b"-", b"t", b"f", b"N", b"I") or first[:1].isdigit()
    is_name = first.startswith((b'"NaN"', b'"Infinity"', b'"-Infinity"'))
    return position + len(head) - len(value) if is_number or is_name else None


def _without(text: Bytes, cuts: list[tuple[int, int]], mark: str) -> Bytes:
    """Return a text with a marked string in the place of each array or string that is cut out."""
    if not cuts:
        return text
    parts: list[bytes] = []
    position = 0
    for index, (start, end) in enumerate(cuts):
        parts += [bytes(text[position:start]), b'"%b%d"' % (mark.encode(), index)]
        position = end
    return b"".join([*parts, bytes(text[position:])])


def _check_size(size: int) -> None:
    if size > MAX_BYTES:
        what = "the JSON, without large arrays of numbers and long strings without escapes,"
        raise too_large("too_many_values", what, size, MAX_BYTES, "bytes")


def _check_counts(text: Bytes) -> None:
    lists = values = 0
    for begin in range(0, len(text), PIECE_BYTES):
        piece = np.frombuffer(text, np.uint8, min(PIECE_BYTES, len(text) - begin), begin)
        lists += int(np.count_nonzero((piece == ord("[")) | (piece == ord("{"))))
        values += int(np.count_nonzero(piece == ord(",")))
        if lists > MAX_LISTS:
            raise too_large("too_many_values", "the JSON", lists, MAX_LISTS, "lists and objects")
        if values > MAX_VALUES:
            raise too_large("too_many_values", "the JSON", values, MAX_VALUES, "values")


def _restored(value: Any, whole: Mapping[str, NumberText | str]) -> Any:
    """Put what was cut out back where its marks are, at whatever depth."""
    if isinstance(value, str):
        return whole.get(value, value)
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, dict):
            for key in [key for key in current if key in whole]:
                current[str(whole[key])] = current.pop(key)
        for place, item in current.items() if isinstance(current, dict) else enumerate(current):
            if isinstance(item, str):
                current[place] = whole.get(item, item)
            elif isinstance(item, dict | list):
                waiting.append(item)
    return value
