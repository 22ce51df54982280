"""Reads tables of CSV (RFC 4180); large ones in a decoder process."""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from engine import Array
from service.codec.conversion import convert
from service.codec.table_cells import (
    check_separator,
    invalid_table,
    is_header,
    numbers,
    parser_of,
    separator_hint,
)
from service.codec.text import decode_text, not_of_charset
from service.config.limits import Limits, too_large
from service.decoding import Task, large_body_decoder
from service.decoding.shared_file import room_for
from service.errors import ServiceError

LARGE_BYTES = 1 << 18
"""Longest table that is read where it is."""
MAX_LINE_CHARACTERS = 2 << 20
"""Longest line of a table."""
_VISIBLE = re.compile(r"\S")
_ROWS = 1 << 12
"""Lines whose cells are in memory at the same time."""
_CELL_BYTES = 8
"""Bytes of the array for each byte of text: a complex number for a digit and a comma."""
_TEXT_BYTES = 6
"""Bytes of memory for each byte of text, which is decoded and copied."""


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
        memory=_TEXT_BYTES * len(body) + 3 * _CELL_BYTES * len(body),
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
    _check_counts(body, limits)
    if (charset or "").lower() == "utf-16" and not body.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise not_of_charset(charset, 0, "it has no byte order mark", "invalid_csv")
    text = decode_text(body, charset, "invalid_csv")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if dtype.kind == "f":
        table = _read_floats(text, dtype, header, columns)
        if table is not None:
            limits.check_shape(table.shape, "the table")
            return table
    return _TableReader(dtype, limits, header, columns).read(text)


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


def _read_floats(text: str, dtype: np.dtype[Any], header: str | None, columns: int | None) -> Array | None:
    """Read a table of nothing but numbers with numpy; None where there is anything else, which `_TableReader` names."""
    end = text.find("\n") + 1
    first = next(csv.reader([text[:end]]), [])
    if not first or (columns is not None and len(first) != columns):
        return None
    skipped = int(header == "present" or (header != "absent" and is_header(first, float)))
    if (skipped and len(first) == 1) or not _VISIBLE.search(text, end * skipped):
        return None  # perhaps numbers with other separators; or none at all
    try:
        table = np.loadtxt(
            _lines(text), delimiter=",", comments=None, quotechar='"', skiprows=skipped, ndmin=2
        )
        return convert(table, dtype, "the table") if table.shape[1] == len(first) else None
    except (ValueError, ServiceError):
        return None


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text.

    Raises:
        ServiceError: 413 `too_many_values` for a line that is too long.
    """
    start = 0
    while start < len(text):
        stop = text.find("\n", start) + 1 or len(text)
        if stop - start > MAX_LINE_CHARACTERS:
            raise too_large(
                "too_many_values", "a line of the table", stop - start, MAX_LINE_CHARACTERS, "characters"
            )
        yield text[start:stop]
        start = stop


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

    def read(self, text: str) -> Array:
        """Return the whole table."""
        arrays, count = [], 0
        cells = self._cells(text)
        while some := list(islice(cells, _ROWS)):
            count += len(some)
            self._limits.check_shape((count, self._width), "the table")
            lines, rows = zip(*some, strict=True)
            arrays.append(numbers(rows, lines, self._parse, self._dtype))
        if not arrays:
            raise invalid_table("the table has no line of numbers", {})
        return np.concatenate(arrays).reshape(count, self._width)

    def _cells(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield number and cells of each line of numbers.

        Raises:
            ServiceError: 400 `invalid_csv`, 413 `too_many_values`, 422 `wrong_shape`.
        """
        for line, row in self._rows(text):
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

    def _rows(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Yield number and cells of each line that is not empty."""
        reader = csv.reader(_lines(text), strict=True, skipinitialspace=True)
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
