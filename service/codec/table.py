"""Reads tables of CSV (RFC 4180); large ones in a decoder process."""

import csv
import re
from collections.abc import Iterator
from io import BytesIO, TextIOWrapper
from itertools import islice
from typing import Any

import numpy as np
import orjson

from engine import Array
from service.codec.table_cells import (
    check_separator,
    invalid_table,
    is_header,
    numbers,
    parser_of,
    separator_hint,
    to_array,
)
from service.codec.text import codec_of, decode_text, not_of_charset
from service.config.limits import Limits, too_large
from service.decoding import Task, large_body_decoder
from service.decoding.shared_file import room_for
from service.errors import ServiceError

LARGE_BYTES = 1 << 18
"""Longest table that is read where it is."""
MAX_LINE_CHARACTERS = 2 << 20
"""Longest line of a table."""
_PIECE_BYTES = 1 << 18
"""Bytes of plain numbers that are parsed at a time."""
_NEWLINE, _COMMA = b"\n,"
_AS_LIST = bytes.maketrans(b"\n\r", b", ")
_NEGATIVE_ZERO = re.compile(rb"-0[^.0-9eE]|-0$")
"""The JSON parser takes it for the integer 0, which has no sign."""
_ROWS = 1 << 12
"""Lines whose cells are in memory at the same time."""
_CELL_BYTES = 8
"""Bytes of the array for each byte of text: a complex number for a digit and a comma."""


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
            `unsupported_charset`, 422 `out_of_range`, `wrong_shape` or `decoding_too_long`, 503 `decoder_failed`.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    decoder = large_body_decoder() if len(body) > LARGE_BYTES else None
    if decoder is None:
        return _read(body, dtype, limits, charset, header, columns)
    task = Task(
        function=(__name__, read_body.__name__),
        data=body,
        arguments={
            "dtype": dtype.str,
            "elements": limits.tensor_elements,
            "charset": charset,
            "header": header,
            "columns": columns,
        },
        room=room_for(1, _CELL_BYTES * len(body) + dtype.itemsize),
        memory=2 * _CELL_BYTES * len(body),
        accepts=lambda _, arrays: [(array.ndim, array.dtype) for array in arrays] == [(2, dtype)],
    )
    [(_, [table])] = decoder.run([task], limits.decode_seconds, "the table takes")
    return table


def read_body(data: bytes, arguments: dict[str, Any]) -> tuple[None, list[Array]]:
    """Read a table; in the decoder process."""
    limits = Limits(tensor_elements=arguments["elements"])
    given = (arguments["charset"], arguments["header"], arguments["columns"])
    return None, [_read(data, np.dtype(arguments["dtype"]), limits, *given)]


def _read(
    body: bytes,
    dtype: np.dtype[Any],
    limits: Limits,
    charset: str | None,
    header: str | None,
    columns: int | None,
) -> Array:
    codec = codec_of(charset)
    _check_counts(body, limits)
    if codec == "utf-16" and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise not_of_charset(charset, 0, "it has no byte order mark", "invalid_csv")
    plain = _read_plain(body, codec, dtype, limits, header, columns)
    if plain is not None:
        return plain
    try:
        return _TableReader(dtype, limits, header, columns).read(_lines(body, codec))
    except UnicodeDecodeError:
        decode_text(body, charset, "invalid_csv")  # names the place in the body
        raise


def _check_counts(body: bytes, limits: Limits) -> None:
    """Check the numbers of commas and of lines before any of them is looked at.

    Commas of the first line are not counted, as it may be a header. In UTF-16, other characters count as well, yet no
    table that is small enough has so many.
    """
    first = body.find(b"\n", 0, MAX_LINE_CHARACTERS)
    limits.check_shape([body.count(b",", max(first, 0))], "the table")
    lines = body.count(b"\n")
    most = 2 * limits.tensor_elements  # some may be empty
    if lines > most:
        raise too_large("tensor_too_large", "the table", lines, most, "lines")


def _read_plain(
    body: bytes, codec: str, dtype: np.dtype[Any], limits: Limits, header: str | None, columns: int | None
) -> Array | None:
    """Read a table of nothing but JSON's numbers, as most are; None where there is anything else.

    The JSON parser takes a tenth of the time.
    """
    end = body.find(b"\n", 0, _PIECE_BYTES) + 1
    try:
        row = next(csv.reader([body[:end].decode(codec)]), [])
    except (UnicodeDecodeError, csv.Error):
        return None
    if not row or dtype.kind not in "fiu" or (columns is not None and len(row) != columns):
        return None
    has_header = header == "present" or (header != "absent" and is_header(row, parser_of(dtype)))
    if has_header and len(row) == 1:
        return None  # perhaps numbers with other separators
    arrays, count, start = [], 0, end * has_header
    while start < len(body):
        is_last = len(body) - start <= _PIECE_BYTES
        stop = len(body) if is_last else body.rfind(b"\n", start, start + _PIECE_BYTES) + 1
        values = _plain_numbers(body[start:stop].rstrip(b"\r\n"), len(row), dtype) if stop else None
        if values is None:
            return None
        count += len(values)
        limits.check_shape((count, len(row)), "the table")
        arrays.append(values)
        start = stop
    return np.concatenate(arrays) if arrays else None


def _plain_numbers(piece: bytes, width: int, dtype: np.dtype[Any]) -> Array | None:
    """Return lines of so many numbers each as an array (lines, width)."""
    if piece.count(b"\r") != piece.count(b"\r\n") or _NEGATIVE_ZERO.search(piece):
        return None
    text = np.frombuffer(piece + b"\n", np.uint8)
    commas = np.cumsum(text == _COMMA)[text == _NEWLINE]
    if (np.diff(commas, prepend=0) != width - 1).any():
        return None
    try:
        cells = orjson.loads(b"[%b]" % piece.translate(_AS_LIST))
    except orjson.JSONDecodeError:
        return None
    taken = {int, float} if dtype.kind == "f" else {int}
    if len(cells) != len(commas) * width or not set(map(type, cells)) <= taken:
        return None
    return to_array(cells, dtype).reshape(-1, width)


def _lines(body: bytes, codec: str) -> Iterator[str]:
    """Yield the lines of a table.

    Raises:
        ServiceError: 413 `too_many_values` for a line that is too long.
        UnicodeDecodeError: the body is not of that charset.
    """
    with TextIOWrapper(BytesIO(body), codec) as text:
        while line := text.readline(MAX_LINE_CHARACTERS + 1):
            if len(line) > MAX_LINE_CHARACTERS:
                what = "a line of the table"
                raise too_large("too_many_values", what, len(line), MAX_LINE_CHARACTERS, "characters")
            yield line


class _TableReader:
    """Reads a table of any kind of cells, some lines at a time.

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

    def read(self, lines: Iterator[str]) -> Array:
        """Return the whole table."""
        arrays, count = [], 0
        cells = self._cells(lines)
        while some := list(islice(cells, _ROWS)):
            count += len(some)
            self._limits.check_shape((count, self._width), "the table")
            places, rows = zip(*some, strict=True)
            arrays.append(numbers(rows, places, self._parse, self._dtype))
        if not arrays:
            raise invalid_table("the table has no line of numbers", {})
        return np.concatenate(arrays).reshape(count, self._width)

    def _cells(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield number and cells of each line of numbers.

        Raises:
            ServiceError: 400 `invalid_csv`, 413 `too_many_values`, 422 `wrong_shape`.
        """
        for line, row in self._rows(lines):
            if not self._width:
                self._width = len(row)
                self._check_columns(row)
                if self._header == "present" or (self._header != "absent" and is_header(row, self._parse)):
                    check_separator(row)
                    continue
            if len(row) != self._width:
                details = {"line": line, "columns": len(row), "expected": self._width}
                raise invalid_table(f"line {line} has {len(row)} columns; expected {self._width}", details)
            yield line, row

    def _rows(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield number and cells of each line that is not empty."""
        reader = csv.reader(lines, strict=True, skipinitialspace=True)
        try:
            for row in reader:
                if row and (len(row) > 1 or row[0].strip()):
                    yield reader.line_num, row
        except csv.Error as error:
            line = reader.line_num
            raise invalid_table(f"line {line}: {error}", {"line": line}) from error

    def _check_columns(self, row: list[str]) -> None:
        if self._columns is not None and self._width != self._columns:
            hint = separator_hint(row[0]) if self._width == 1 else ""
            message = f"the number of the table's columns is {self._width}; expected {self._columns}{hint}"
            details = {"columns": self._width, "expected": self._columns}
            raise ServiceError(422, "wrong_shape", message, details)
