"""Large JSON arrays of numbers that are still text: they are converted to arrays piece by piece.

A parser that makes a Python object of every number of a large array holds the interpreter's lock all the while, and
takes ten times the memory of the array. Here the structure of the text is examined by numpy, which releases the lock,
before anything is allocated; then the numbers are parsed and converted some thousands at a time.
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from engine import Array
from service.errors import ServiceError
from service.heavy_work import check_wanted

PIECE_BYTES = 1 << 16
"""Bytes of text that are examined or parsed at a time, which takes about half a millisecond."""
_FIRST_BYTES = 1 << 12
"""Bytes that are searched first for the end of a list, as most are short."""
MAX_DEPTH = 33
"""Deepest nesting: 32 dimensions, and the pairs of complex numbers."""

_COMMA, _OPEN, _CLOSE = b",[]"
_SPACES = b" \t\r\n"

Bytes = bytes | bytearray


class NumberText:
    """A JSON array of numbers that is not parsed yet.

    Args:
        source: the document that holds it.
        start: position of its first bracket.
        stop: position after its last bracket.
        takes_bare_names: whether bare NaN, Infinity and -Infinity are read, although they are not JSON.
    """

    __slots__ = ("_source", "_start", "_stop", "_takes_bare_names")

    def __init__(self, source: Bytes, start: int, stop: int, takes_bare_names: bool = False) -> None:
        self._source = source
        self._start = start
        self._stop = stop
        self._takes_bare_names = takes_bare_names

    def __repr__(self) -> str:
        """Describe it for messages, which never show the numbers of a large array."""
        return f"a list of {self.size} bytes"

    @property
    def size(self) -> int:
        """Bytes of the text."""
        return self._stop - self._start

    def shape(self, place: str) -> tuple[int, ...]:
        """Return the shape of the nested lists, without parsing a number.

        Raises:
            ServiceError: 400 `invalid_tensor` where lists differ in depth or length.
        """
        if self._is_flat():  # whether it has a number between commas is seen where they are parsed
            return (count_byte(self._source, _COMMA, self._start, self._stop) + 1,)
        nesting = _Nesting(place)
        for piece in self._pieces():
            nesting.add(piece)
        return nesting.shape()

    def elements(self, place: str) -> Iterator[list[Any]]:
        """Yield the elements in row-major order, some thousands at a time.

        Raises:
            ServiceError: 400 `invalid_json`.
        """
        for piece in self._pieces():
            numbers = piece.replace(b"[", b" ").replace(b"]", b" ")
            text = b"[%b]" % numbers.removesuffix(b",")
            try:
                yield orjson.loads(text)
            except orjson.JSONDecodeError as error:
                yield self._leniently(text, error, place)

    def _is_flat(self) -> bool:
        """Return whether there are no lists in it."""
        steps = range(self._start + 1, self._stop, PIECE_BYTES)
        return all(
            self._source.find(b"[", begin, min(begin + PIECE_BYTES, self._stop)) < 0 for begin in steps
        )

    def _leniently(self, text: bytes, error: orjson.JSONDecodeError, place: str) -> list[Any]:
        """Parse a piece that may hold bare names of numbers."""
        has_name = b"NaN" in text or b"Infinity" in text
        hint = ""
        if has_name and self._takes_bare_names:
            with contextlib.suppress(ValueError, RecursionError):
                elements: list[Any] = json.loads(text)
                return elements
        elif has_name:
            hint = '; write "NaN", "Infinity" and "-Infinity" as strings'
        message = f"{place}: data is not a JSON list of numbers: {error.msg}{hint}"
        raise ServiceError(400, "invalid_json", message) from error

    def _pieces(self) -> Iterator[bytes]:
        """Yield the text in pieces that end behind a comma.

        Raises:
            ServiceError: 400 `invalid_json` where there is no comma for a whole piece.
        """
        start = self._start
        while start < self._stop:
            check_wanted()
            stop = min(start + PIECE_BYTES, self._stop)
            if stop < self._stop:
                stop = self._source.rfind(b",", start, stop) + 1
                if not stop:
                    raise ServiceError(400, "invalid_json", f"a number has more than {PIECE_BYTES} bytes")
            yield bytes(self._source[start:stop])
            start = stop


def find_end(source: Bytes, start: int) -> int | None:
    """Return the position after the bracket that closes the one at `start`; None where there is no such bracket."""
    depth, begin, step = 0, start, _FIRST_BYTES
    while begin < len(source):
        text = np.frombuffer(source, np.uint8, min(step, len(source) - begin), begin)
        places = np.flatnonzero((text == _OPEN) | (text == _CLOSE))
        if places.size:
            depths = depth + np.cumsum(np.where(text[places] == _OPEN, 1, -1))
            ends = np.flatnonzero(depths == 0)
            if ends.size:
                return begin + int(places[ends[0]]) + 1
            depth = int(depths[-1])
        begin, step = begin + step, PIECE_BYTES
    return None


def count_byte(data: Bytes, value: int, start: int = 0, stop: int | None = None) -> int:
    """Return how often a byte occurs between two positions; the interpreter's lock is released in between."""
    end = len(data) if stop is None else stop
    steps = ((begin, min(PIECE_BYTES, end - begin)) for begin in range(start, end, PIECE_BYTES))
    return sum(
        int(np.count_nonzero(np.frombuffer(data, np.uint8, size, begin) == value)) for begin, size in steps
    )


class _Nesting:
    """Finds the shape of nested lists from the places of their brackets and commas.

    In lists of equal lengths the k-th list at each depth begins at element k * n and ends at element k * n + n - 1, if
    n is the number of elements that each of them holds at all depths below.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._last = _OPEN
        self._depth = 0
        self._commas = 0
        self._sizes: dict[int, int] = {}
        self._opened = [0] * (MAX_DEPTH + 2)
        self._closed = [0] * (MAX_DEPTH + 2)

    def add(self, piece: bytes) -> None:
        """Examine the next piece of the text."""
        text = np.frombuffer(piece.translate(None, _SPACES), np.uint8)
        self._check_neighbours(text)
        is_open = text == _OPEN
        places, commas = np.flatnonzero(is_open | (text == _CLOSE)), np.flatnonzero(text == _COMMA)
        if places.size:
            self._check_lists(is_open[places], self._commas + np.searchsorted(commas, places))
        self._commas += commas.size

    def shape(self) -> tuple[int, ...]:
        """Return the shape of the text that was examined."""
        depth = max(self._sizes)
        for level in range(1, depth + 1):
            if self._sizes[level] * self._closed[level] != self._commas + 1:
                raise self._uneven(level)
        sizes = [self._sizes[level] for level in range(1, depth + 1)]
        inner = [*sizes[1:], 1]
        return tuple(size // below for size, below in zip(sizes, inner, strict=True))

    def _check_neighbours(self, text: Array) -> None:
        """Check that a list begins behind a comma or a bracket, and ends before one."""
        if not text.size:
            return
        before = np.concatenate((np.array([self._last], np.uint8), text[:-1]))
        begins = (text == _OPEN) & (before != _OPEN) & (before != _COMMA)
        ends = (before == _CLOSE) & (text != _CLOSE) & (text != _COMMA)
        if (begins | ends).any():
            raise ServiceError(400, "invalid_json", f"{self._place}: data is not JSON: a comma is missing")
        self._last = int(text[-1])

    def _check_lists(self, is_open: Array, elements: Array) -> None:
        """Check where lists begin and end.

        Args:
            is_open: for each bracket whether it opens a list.
            elements: for each bracket the number of commas before it.
        """
        steps = np.where(is_open, 1, -1)
        after = self._depth + np.cumsum(steps)
        depths = np.where(is_open, after, after + 1)
        deepest = int(depths.max())
        if deepest > MAX_DEPTH:
            raise self._uneven(MAX_DEPTH + 1)
        for level in range(int(depths.min()), deepest + 1):
            chosen = depths == level
            self._check_level(level, elements[chosen & is_open], elements[chosen & ~is_open])
        self._depth = int(after[-1])

    def _check_level(self, level: int, begins: Array, ends: Array) -> None:
        if level not in self._sizes and ends.size:
            self._sizes[level] = int(ends[0]) + 1
        size = self._sizes.get(level, 0)
        first, last = self._opened[level], self._closed[level]
        expected = (first + np.arange(begins.size)) * size
        if not (np.array_equal(begins, expected) and self._end_evenly(ends, last, size)):
            raise self._uneven(level)
        self._opened[level] += begins.size
        self._closed[level] += ends.size

    @staticmethod
    def _end_evenly(ends: Array, last: int, size: int) -> bool:
        return np.array_equal(ends, (last + 1 + np.arange(ends.size)) * size - 1)

    def _uneven(self, level: int) -> ServiceError:
        message = f"{self._place}: lists differ in depth or length at depth {level}; expected equal ones"
        return ServiceError(400, "invalid_tensor", message, {"expected": "equal ones"})
