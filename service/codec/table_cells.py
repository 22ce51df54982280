"""Converts the cells of a table of CSV to numbers."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from engine import Array
from service.codec.conversion import convert, out_of_range, to_integers
from service.errors import ServiceError

Parser = Callable[[str], Any]
_BOOLEANS = {"0": False, "1": True, "false": False, "true": True}
_OTHER_SEPARATORS = {";": "';'", "\t": "tabs", "|": "'|'"}
_STEP = 1 << 13
"""Cells that are converted at a time: their objects take ten times the memory of the array."""


def parser_of(dtype: np.dtype[Any]) -> Parser:
    """Return what converts a cell for a dtype, or raises ValueError."""
    parsers: dict[str, Parser] = {"f": float, "i": int, "u": int, "c": complex, "b": _boolean}
    return parsers[dtype.kind]


def is_header(row: Sequence[str], parse: Parser) -> bool:
    """Return whether a line holds no number at all."""
    return not any(_is_number(cell, parse) or _is_number(cell, float) for cell in row)


def check_separator(row: Sequence[str]) -> None:
    """Check that a line which is taken for a header is no line of numbers with other separators than commas.

    Raises:
        ServiceError: 400 `invalid_csv`.
    """
    for separator, name in _OTHER_SEPARATORS.items():
        cells = row[0].split(separator)
        if len(row) == 1 and len(cells) > 1 and all(_is_number(cell, float) for cell in cells):
            message = f"the table's numbers are separated by {name}; expected commas"
            raise invalid_table(message, {"line": 1, "expected": ","})


def separator_hint(cell: str) -> str:
    """Return what a message says of a cell that seems to be several, with other separators than commas between them."""
    others = [name for separator, name in _OTHER_SEPARATORS.items() if separator in cell]
    return f"; cells are separated by commas, not by {others[0]}" if others else ""


def numbers(
    rows: Sequence[Sequence[str]], lines: Sequence[int], parse: Parser, dtype: np.dtype[Any]
) -> Array:
    """Convert the cells of lines to a flat array.

    Args:
        rows: the cells of each line.
        lines: the lines' numbers.
        parse: what `parser_of` returned.
        dtype: of the array.

    Raises:
        ServiceError: 400 `invalid_csv` with line and column, 422 `out_of_range`.
    """
    cells = list(chain.from_iterable(rows))
    parts = []
    for start in range(0, len(cells), _STEP):
        step = cells[start : start + _STEP]
        if "_" in "".join(step):
            raise _cell_error(rows, lines, parse)
        try:
            parts.append(to_array(list(map(parse, step)), dtype))
        except ValueError as error:
            raise _cell_error(rows, lines, parse) from error
    return np.concatenate(parts)


def to_array(flat: list[Any], dtype: np.dtype[Any]) -> Array:
    """Make an array of parsed numbers.

    Raises:
        ServiceError: 422 `out_of_range`.
    """
    if dtype.kind == "b":
        return np.array(flat, dtype)
    if dtype.kind in "iu":
        try:
            wide = np.array(flat, np.uint64 if dtype == np.uint64 else np.int64)
        except OverflowError as error:
            raise out_of_range("the table", dtype) from error
        return to_integers(wide, dtype, "the table")
    return convert(np.array(flat, np.complex128 if dtype.kind == "c" else np.float64), dtype, "the table")


def invalid_table(message: str, details: dict[str, Any]) -> ServiceError:
    """Return the error for a table that cannot be read."""
    return ServiceError(400, "invalid_csv", message, details)


def _boolean(cell: str) -> bool:
    value = _BOOLEANS.get(cell.strip().lower())
    if value is None:
        raise ValueError(cell)
    return value


def _is_number(cell: str, parse: Parser) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python's digit separator, which CSV does not have


def _cell_error(rows: Sequence[Sequence[str]], lines: Sequence[int], parse: Parser) -> ServiceError:
    for line, row in zip(lines, rows, strict=True):
        for column, cell in enumerate(row, 1):
            if not _is_number(cell, parse):
                return _bad_cell(line, column, cell, parse)
    raise AssertionError("the caller found a bad cell")


def _bad_cell(line: int, column: int, cell: str, parse: Parser) -> ServiceError:
    wanted = "a whole number" if parse is int else "a number"
    details = {"line": line, "column": column, "cell": cell[:40]}
    if not cell.strip():
        return invalid_table(f"line {line}, column {column} is empty; expected {wanted}", details)
    problem = f"{cell[:40]!r} is not {wanted}{separator_hint(cell)}"
    return invalid_table(f"line {line}, column {column}: {problem}", details)
