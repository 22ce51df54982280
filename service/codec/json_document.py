"""Parses JSON documents; large ones in a decoder process, which returns their arrays of numbers in shared memory."""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from engine import Array
from service.codec.json_numbers import Numbers, flatten
from service.codec.json_text import NOT_FINITE
from service.config.limits import Limits, too_large
from service.decoding import Decoder, Task, large_body_decoder
from service.decoding.shared_file import room_for

LARGE_BYTES = 1 << 18
"""Longest document that is parsed where it is."""
MAX_OBJECTS = 1 << 16
"""Maximum objects of a large document."""
MAX_LISTS = 1 << 20
"""Maximum lists of a large document."""
MAX_VALUES = 1 << 18
"""Maximum values of a large document, besides those of large arrays of numbers."""

Bytes = bytes | bytearray

_LIMITS = Limits()
_BARE_NAMES = (b"NaN", b"Inf")
_LARGE_ARRAY = 1 << 10
"""Fewest elements of an array of numbers that is returned in shared memory."""
_NUMBER_BYTES = 4
"""Bytes of memory for each byte of text that a number takes: eight for a digit and a comma."""
_OBJECT_BYTES = 24
"""Bytes of memory for each byte of text that the parser's objects may take."""


def syntax_problem(error: orjson.JSONDecodeError) -> str:
    """Return what is wrong with a body that is not JSON, for a message."""
    if "UTF-8" in str(error):  # such as a picture
        return "it is not UTF-8; POST /infer accepts pictures and arrays as they are, with their Content-Type or none"
    return str(error)


def parse_document(text: Bytes, limits: Limits = _LIMITS, *, takes_bare_names: bool = False) -> Any:
    """Parse a JSON document.

    Args:
        text: the document.
        limits: how large it may be, and how long it may take.
        takes_bare_names: whether bare NaN, Infinity and -Infinity are read, although they are not JSON.

    Returns:
        The document; in a large one, lists of numbers may be `Numbers`.

    Raises:
        orjson.JSONDecodeError: it is not JSON.
        ServiceError: 413 `body_too_large` or `too_many_values`; 422 `decoding_too_long`; 503 `decoder_failed`.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    limits.check_json(len(text))
    decoder = large_body_decoder() if len(text) > LARGE_BYTES else None
    if decoder is None:
        return _parse(text, takes_bare_names)
    return _parse_remotely(decoder, text, limits, takes_bare_names)


def read_document(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[Array]]:
    """Parse a document; in the decoder process.

    Returns:
        `document`, in which strings that begin with the mark stand for arrays, and a line of `numbers` for each; or
        else `error`.
    """
    _check_counts(data)
    try:
        document = _parse(data, arguments["takes_bare_names"])
    except orjson.JSONDecodeError as error:
        return {"error": [error.msg, error.pos]}, []
    cutter = _Cutter(arguments["mark"])
    try:
        rest = cutter.cut(document)
    except RecursionError:
        return {"error": ["Recursion limit reached", 0]}, []
    lines, arrays = [], list[Array]()
    for numbers in cutter.cuts:
        lines.append([numbers.nesting, sorted(numbers.kinds), numbers.problem, numbers.values is not None])
        arrays += [] if numbers.values is None else [numbers.values]
    return {"document": rest, "numbers": lines}, arrays


def _parse_remotely(decoder: Decoder, text: Bytes, limits: Limits, takes_bare_names: bool) -> Any:
    mark = os.urandom(16).hex()  # no client can guess it and write it in an array's place
    task = Task(
        function=(__name__, read_document.__name__),
        data=memoryview(text),
        arguments={"mark": mark, "takes_bare_names": takes_bare_names},
        room=room_for(len(text) // _LARGE_ARRAY, _NUMBER_BYTES * len(text)),
        memory=_OBJECT_BYTES * len(text),
        accepts=_is_sound,
    )
    [(result, arrays)] = decoder.run([task], limits.decode_seconds, "the JSON takes")
    if "error" in result:
        message, position = result["error"]
        raise orjson.JSONDecodeError(message, str(text, "utf-8", "replace")[:position], position)
    given = iter(arrays)
    numbers = [_numbers(line, next(given) if line[3] else None) for line in result["numbers"]]
    return _restored(result["document"], {f"{mark}{index}": one for index, one in enumerate(numbers)})


def _parse(text: Bytes, takes_bare_names: bool) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        around = bytes(text[max(0, error.pos - 12) : error.pos + 12])
        if not takes_bare_names or not any(name in around for name in _BARE_NAMES):
            raise
    try:
        document = json.loads(str(text, "utf-8"))
        # refuses lone surrogates, as orjson does: no response could hold them
        json.dumps(document, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise orjson.JSONDecodeError(error.msg, error.doc, error.pos) from error
    except (ValueError, RecursionError) as error:
        raise orjson.JSONDecodeError(str(error), "", 0) from error
    return document


def _check_counts(text: bytes) -> None:
    """Check how many objects a parser would make, before it makes one."""
    for byte, most, unit in ((b"{", MAX_OBJECTS, "objects"), (b"[", MAX_LISTS, "lists")):
        found = text.count(byte)
        if found > most:
            raise too_large("too_many_values", "the JSON", found, most, unit)


class _Cutter:
    """Cuts the large arrays of numbers out of a document.

    Args:
        mark: what strings begin with that stand for arrays.

    Attributes:
        cuts: the arrays.
    """

    def __init__(self, mark: str) -> None:
        self.cuts: list[Numbers] = []
        self._mark = mark
        self._values = 0

    def cut(self, value: Any) -> Any:
        """Return a value without its large arrays.

        Raises:
            ServiceError: 413 `too_many_values`.
        """
        self._values += 1
        if self._values > MAX_VALUES:
            raise too_large("too_many_values", "the JSON", self._values, MAX_VALUES, "values")
        if isinstance(value, list):
            numbers = flatten(value, 1 << 62) if _begins_with_a_number(value) else None
            if numbers is not None and (_is_large(numbers) or _is_not_finite(numbers)):
                self.cuts.append(numbers)
                return f"{self._mark}{len(self.cuts) - 1}"
            return [self.cut(item) for item in value]
        if isinstance(value, dict):
            return {key: self.cut(item) for key, item in value.items()}
        return (
            float("inf") if type(value) is int and value.bit_length() > 63 else value
        )  # the serialiser has none


def _begins_with_a_number(value: Any) -> bool:
    while isinstance(value, list) and value:
        value = value[0]
    return value in NOT_FINITE if isinstance(value, str) else not isinstance(value, dict)


def _is_large(numbers: Numbers) -> bool:
    """Return whether there are many elements, or even lists of many that are uneven."""
    size = 1
    for length in numbers.nesting:
        size *= max(length, 1)
    return size >= _LARGE_ARRAY


def _is_not_finite(numbers: Numbers) -> bool:
    """Return whether there are numbers which JSON has not, as bare names: the result is JSON."""
    values = numbers.values
    return values is not None and values.dtype.kind == "f" and not np.isfinite(values).all()


def _is_sound(result: Any, arrays: list[Array]) -> bool:
    """Return whether the result of `read_document` is one."""
    match result:
        case {"error": [str(), int()]}:
            return not arrays
        case {"document": _, "numbers": [*lines]}:
            given = iter(arrays)
            return all(_is_line(line, given) for line in lines) and next(given, None) is None
    return False


def _is_line(line: Any, arrays: Any) -> bool:
    match line:
        case [[*nesting], [*kinds], None | [str(), str()], bool(has_values)]:
            size = 1
            for length in nesting:
                size *= length if type(length) is int and length >= 0 else -1
            array = next(arrays, None) if has_values else None
            fits = array is not None and array.shape == (size,)
            return size >= 0 and all(isinstance(kind, str) for kind in kinds) and fits == has_values
    return False


def _numbers(line: Any, values: Array | None) -> Numbers:
    nesting, kinds, problem, _ = line
    return Numbers(tuple(nesting), frozenset(kinds), values, None if problem is None else tuple(problem))


def _restored(value: Any, whole: Mapping[str, Numbers]) -> Any:
    """Put what was cut out back where its marks are, at whatever depth."""
    if isinstance(value, str):
        return whole.get(value, value)
    waiting = [value]
    while waiting:
        current = waiting.pop()
        for place, item in current.items() if isinstance(current, dict) else enumerate(current):
            if isinstance(item, str):
                current[place] = whole.get(item, item)
            elif isinstance(item, dict | list):
                waiting.append(item)
    return value
