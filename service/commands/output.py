"""How commands print: tables and colours for people, JSON for programs."""

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import orjson
import typer
from rich.console import Console
from rich.table import Table

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
"""The flag that all commands have."""

_PIPED_WIDTH = 120
_FILE_WIDTH = 160


def console(file: IO[str] | None = None) -> Console:
    """Return what writes to standard output or a file: without colour where that is no terminal, or `NO_COLOR` is set.

    Where it is no terminal, lines are 120 characters wide, or as `COLUMNS` says.
    """
    if file is not None:
        return Console(file=file, highlight=False, width=_FILE_WIDTH, emoji=False, markup=False)
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_WIDTH
    return Console(highlight=False, soft_wrap=False, width=width, emoji=False, markup=False)


def print_json(value: Any) -> None:
    """Print a value as JSON, indented; numbers that JSON does not know become null."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    sys.stdout.write(orjson.dumps(value, _plain, options).decode() + "\n")


def path_text(path: Path) -> str:
    """Return a path as text for files and JSON: bytes of it that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode(errors="replace")


def _plain(value: Any) -> Any:
    """Return what orjson does not know as what it knows: paths as text, numbers of numpy and named tuples as such."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple):
        return list(value)
    return str(value)


def check_output(path: Path | None) -> None:
    """Check that a file can be written, before a run whose result it is to hold; None for no file.

    Raises:
        OSError: it is a folder, its folder does not exist, or it may not be written.
    """
    if path is None:
        return
    if path.is_dir():
        problem = errno.EISDIR
    elif not path.parent.is_dir():
        problem = errno.ENOENT
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        problem = errno.EACCES
    else:
        return
    raise OSError(problem, os.strerror(problem), str(path))


def table(*columns: str, title: str | None = None, numbers: Sequence[str] = ()) -> Table:
    """Return an empty table.

    Args:
        columns: its headings.
        title: what stands above it.
        numbers: headings of the columns that are set flush right.
    """
    made = Table(title=title, box=None, title_justify="left", pad_edge=False, header_style="bold")
    for column in columns:
        is_number = column in numbers
        made.add_column(column, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    return made


def add_rows(made: Table, rows: Iterable[Iterable[object]]) -> Table:
    """Add rows to a table, values as text, None as a hyphen; return the table."""
    for row in rows:
        made.add_row(*("-" if value is None else str(value) for value in row))
    return made


def bar(part: float, width: int = 20) -> str:
    """Return a bar that fills a part of the width, in eighths of a character; `part` is 0 to 1."""
    eighths = round(max(0.0, min(1.0, part)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (chr(0x2590 - rest) if rest else "")
