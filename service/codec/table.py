"""Reads tables of CSV (RFC 4180) in pieces of whole lines, so that no step holds the interpreter's lock for long."""

import codecs
import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import numpy as np
import orjson

from engine import Array
from service.codec.number_text import count_byte
from service.codec.table_cells import (
    check_separator,
    invalid_table,
    is_header,
    numbers,
    parser_of,
    separator_hint,
    to_array,
)
from service.codec.text import codec_of, not_of_charset
from service.config.limits import Limits, too_large
from service.errors import ServiceError
from service.heavy_work import check_wanted, turns_for

MAX_LINE_BYTES = 2 << 20
"""Longest line of a table."""
_PIECE_BYTES = 1 << 16

_NEWLINE, _COMMA = b"\n,"
_AS_LIST = bytes.maketrans(b"\n\r", b", ")
_NEGATIVE_ZERO = re.compile(rb"-0[^.0-9eE]")
"""The JSON parser takes it for the integer 0, which has no sign."""


def read_table(
    body: bytes,
    dtype: np.dtype[Any],
    limits: Limits,
    *,
    charset: str | None = None,
    header: str | None = None,
    columns: int | None = None,
) -> Array:
    """Read a table of numbers.

    The first line is a header where it holds no number at all; `header` settles it, as the parameter of `text/csv`.
    Empty lines are skipped.

    Args:
        body: the table.
        dtype: of the elements; complex numbers are written 1+2j, booleans true, false, 1 or 0.
        limits: how many elements are too many.
        charset: the body's charset, as HTTP names it; UTF-8 where it is None.
        header: `present`, `absent`, or None to look.
        columns: how many columns the table should have; None for any number.

    Returns:
        Array (lines, columns) of `dtype`.

    Raises:
        ServiceError: 400 `invalid_csv` with line and column, 413 `tensor_too_large` or `too_many_values`, 415
            `unsupported_charset`, 422 `out_of_range` or `wrong_shape`.
    """
    with turns_for(len(body)):
        _check_counts(body, limits)
        reader = _TableReader(dtype, limits, header, columns)
        for piece in _whole_lines(_utf8(body, codec_of(charset), charset)):
            reader.add(piece)
        return reader.array()


def _check_counts(body: bytes, limits: Limits) -> None:
    """Check the numbers of commas and of lines before any of them is looked at.

    Commas of the first line are not counted, as it may be a header. In UTF-16, other characters count as well, yet no
    table that is small enough has so many.
    """
    first = body.find(b"\n", 0, MAX_LINE_BYTES)
    limits.check_shape([count_byte(body, _COMMA, max(first, 0))], "the table")
    lines = count_byte(body, _NEWLINE)
    most = 2 * limits.tensor_elements  # some may be empty
    if lines > most:
        raise too_large("tensor_too_large", "the table", lines, most, "lines")


def _utf8(body: bytes, codec: str, charset: str | None) -> Iterator[bytes]:
    """Yield the text in UTF-8, some bytes at a time.

    Raises:
        ServiceError: 400 `invalid_csv`.
    """
    decoder = codecs.getincrementaldecoder(codec)()
    for start in range(0, len(body), _PIECE_BYTES):
        check_wanted()
        pending = len(decoder.getstate()[0])
        stop = start + _PIECE_BYTES
        try:
            yield decoder.decode(body[start:stop], stop >= len(body)).encode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            position = start - pending + error.start
            raise not_of_charset(charset, position, error.reason, "invalid_csv") from error
        except UnicodeError as error:  # all that the incremental decoder says of UTF-16 in no known order
            raise not_of_charset(charset, 0, "it has no byte order mark", "invalid_csv") from error


def _whole_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the text in pieces of whole lines; no piece ends within quotes.

    Raises:
        ServiceError: 413 `too_many_values` for a line that is too long.
    """
    rest = b""
    for chunk in chunks:
        rest += chunk
        end = rest.rfind(b"\n") + 1
        if end and rest.count(b'"', 0, end) % 2 == 0:
            yield rest[:end]
            rest = rest[end:]
        if len(rest) > MAX_LINE_BYTES:
            raise too_large("too_many_values", "a line of the table", len(rest), MAX_LINE_BYTES, "bytes")
    if rest:
        yield rest


class _TableReader:
    """Reads a table piece by piece.

    Args:
        dtype: of the elements.
        limits: how many elements are too many.
        header: `present`, `absent`, or None to look.
        columns: how many columns the table should have; None for any number.
    """

    def __init__(self, dtype: np.dtype[Any], limits: Limits, header: str | None, columns: int | None) -> None:
        self._dtype = dtype
        self._limits = limits
        self._header = header
        self._columns = columns
        self._parse = parser_of(dtype)
        self._width = 0
        self._lines = 0
        self._rows = 0
        self._arrays: list[Array] = []

    def add(self, piece: bytes) -> None:
        """Read the next lines."""
        if not self._width:
            end = piece.find(b"\n") + 1 or len(piece)
            if piece.count(b'"', 0, end) % 2:
                end = len(piece)
            self._append(self._read_cells(piece[:end]))
            piece = piece[end:]
        if piece:
            values = self._read_plain(piece) if self._width else None
            self._append(self._read_cells(piece) if values is None else values)

    def array(self) -> Array:
        """Return the whole table."""
        if not self._rows:
            raise invalid_table("the table has no line of numbers", {})
        return np.concatenate(self._arrays).reshape(self._rows, self._width)

    def _append(self, values: Array) -> None:
        if values.size:
            self._rows += values.size // self._width
            self._limits.check_shape((self._rows, self._width), "the table")
            self._arrays.append(values)

    def _read_plain(self, piece: bytes) -> Array | None:
        """Read lines of nothing but JSON's numbers, as most tables have; None where there is anything else."""
        if self._dtype.kind not in "fiu" or b'"' in piece or piece.count(b"\r") != piece.count(b"\r\n"):
            return None
        rows = self._count_rows(piece)
        if not rows or _NEGATIVE_ZERO.search(piece):
            return None
        try:
            cells = orjson.loads(b"[%b]" % piece.removesuffix(b"\n").translate(_AS_LIST))
        except orjson.JSONDecodeError:
            return None
        taken = {int, float} if self._dtype.kind == "f" else {int}
        if len(cells) != rows * self._width or not set(map(type, cells)) <= taken:
            return None
        self._lines += rows
        return to_array(cells, self._dtype)

    def _count_rows(self, piece: bytes) -> int:
        """Return the number of lines, 0 where some have more or fewer commas than they should."""
        text = np.frombuffer(piece.removesuffix(b"\n") + b"\n", np.uint8)
        commas = np.cumsum(text == _COMMA)[text == _NEWLINE]
        return commas.size if (np.diff(commas, prepend=0) == self._width - 1).all() else 0

    def _read_cells(self, piece: bytes) -> Array:
        """Read lines of any kind of cells."""
        rows, lines = self._split(piece.decode("utf-8", "surrogatepass"))
        if rows and not self._width:
            self._width = len(rows[0])
            self._check_columns(rows[0])
            if self._header == "present" or (self._header != "absent" and is_header(rows[0], self._parse)):
                check_separator(rows[0])
                rows, lines = rows[1:], lines[1:]
        for line, row in zip(lines, rows, strict=True):
            if len(row) != self._width:
                details = {"line": line, "columns": len(row), "expected": self._width}
                raise invalid_table(f"line {line} has {len(row)} columns; expected {self._width}", details)
        return numbers(rows, lines, self._parse, self._dtype) if rows else np.empty(0, self._dtype)

    def _check_columns(self, row: list[str]) -> None:
        if self._columns is not None and self._width != self._columns:
            hint = separator_hint(row[0]) if self._width == 1 else ""
            message = f"the number of the table's columns is {self._width}; expected {self._columns}{hint}"
            details = {"columns": self._width, "expected": self._columns}
            raise ServiceError(422, "wrong_shape", message, details)

    def _split(self, text: str) -> tuple[list[list[str]], list[int]]:
        """Return the cells of each line that is not empty, and the lines' numbers."""
        reader = csv.reader(StringIO(text, newline=""), strict=True, skipinitialspace=True)
        rows, lines = [], []
        try:
            for row in reader:
                if row and (len(row) > 1 or row[0].strip()):
                    rows.append(row)
                    lines.append(self._lines + reader.line_num)
        except csv.Error as error:
            line = self._lines + reader.line_num
            raise invalid_table(f"line {line}: {error}", {"line": line}) from error
        self._lines += reader.line_num
        return rows, lines
