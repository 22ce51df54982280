"""Reads tables of CSV (RFC 4180)."""

import csv
from collections.abc import Callable, Sequence
from io import StringIO
from itertools import chain
from typing import Any

import numpy as np

from engine import Array
from service.codec.conversion import convert, out_of_range, to_integers
from service.config.limits import Limits
from service.errors import ServiceError

_Parser = Callable[[str], Any]
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}


def read_table(text: str, dtype: np.dtype[Any], limits: Limits, header: str | None = None) -> Array:
    """Read a table of numbers.

    The first line is a header where it holds no number at all; `header` settles it, as the parameter of `text/csv`.
    Empty lines are skipped.

    Args:
        text: the table.
        dtype: of the elements; complex numbers are written 1+2j, booleans true, false, 1 or 0.
        limits: how many elements are too many.
        header: `present`, `absent`, or None to look.

    Returns:
        Array (lines, columns) of `dtype`.

    Raises:
        ServiceError: 400 `invalid_csv` with line and column, 413 `tensor_too_large`, 422 `out_of_range`.
    """
    # checked before the table is split; the first line may be a header and is not counted
    limits.check_shape([text.count(",") - text.partition("\n")[0].count(",")], "the table")
    parse = _parser(dtype)
    rows, lines = _split(text)
    width = len(rows[0]) if rows else 0
    if rows and (header == "present" or (header != "absent" and _is_header(rows[0], parse))):
        rows, lines = rows[1:], lines[1:]
    if not rows:
        raise _invalid("the table has no line of numbers", {})
    _check_widths(rows, lines, width)
    limits.check_shape((len(rows), width), "the table")
    return _numbers(rows, lines, parse, dtype).reshape(len(rows), width)


def _split(text: str) -> tuple[list[list[str]], list[int]]:
    """Return the cells of each line that is not empty, and the lines' numbers."""
    reader = csv.reader(StringIO(text, newline=""), strict=True, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                rows.append(row)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise _invalid(f"line {reader.line_num}: {error}", {"line": reader.line_num}) from error
    return rows, lines


def _parser(dtype: np.dtype[Any]) -> _Parser:
    parsers: dict[str, _Parser] = {"f": float, "i": int, "u": int, "c": complex, "b": _boolean}
    return parsers[dtype.kind]


def _boolean(cell: str) -> bool:
    value = _BOOLEANS.get(cell.strip().lower())
    if value is None:
        raise ValueError(cell)
    return value


def _is_number(cell: str, parse: _Parser) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's digit separator, which CSV does not have


def _is_header(row: Sequence[str], parse: _Parser) -> bool:
    return not any(_is_number(cell, parse) or _is_number(cell, float) for cell in row)


def _check_widths(rows: list[list[str]], lines: list[int], width: int) -> None:
    if set(map(len, rows)) == {width}:
        return
    line, row = next((line, row) for line, row in zip(lines, rows, strict=True) if len(row) != width)
    details = {"line": line, "columns": len(row), "expected": width}
    raise _invalid(f"line {line} has {len(row)} columns; expected {width}", details)


def _numbers(rows: list[list[str]], lines: list[int], parse: _Parser, dtype: np.dtype[Any]) -> Array:
    cells = list(chain.from_iterable(rows))
    if "_" in "".join(cells):
        raise _cell_error(rows, lines, parse)
    try:
        flat = list(map(parse, cells))
    except ValueError as error:
        raise _cell_error(rows, lines, parse) from error
    return _array(flat, dtype)


def _array(flat: list[Any], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return np.array(flat, dtype)
    if dtype.kind in "iu":
        try:
            return to_integers(
                np.array(flat, np.uint64 if dtype == np.uint64 else np.int64), dtype, "the table"
            )
        except OverflowError as error:
            raise out_of_range("the table", dtype) from error
    wide = np.complex128 if dtype.kind == "c" else np.float64
    return convert(np.array(flat, wide), dtype, "the table")


def _cell_error(rows: list[list[str]], lines: list[int], parse: _Parser) -> ServiceError:
    for line, row in zip(lines, rows, strict=True):
        for column, cell in enumerate(row, 1):
            if not _is_number(cell, parse):
                wanted = "a whole number" if parse is int else "a number"
                message = f"line {line}, column {column}: {cell[:40]!r} is not {wanted}"
                return _invalid(message, {"line": line, "column": column, "cell": cell[:40]})
    raise AssertionError("the caller found a bad cell")


def _invalid(message: str, details: dict[str, Any]) -> ServiceError:
    return ServiceError(400, "invalid_csv", message, details)
