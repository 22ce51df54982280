"""Markdown tables."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a bar inside a cell is escaped."""
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(
        f"| {' | '.join(line)} |".replace("|  |", "| |").replace("|  |", "| |") for line in lines
    )


def definitions(rows: Iterable[tuple[str, str, str]]) -> str:
    """Return a list of names, each with what it may be and with its meaning; either may be empty."""
    return "\n".join(
        f"- `{name}`{f' ({kind})' if kind else ''}{f': {meaning}' if meaning else ''}"
        for name, kind, meaning in rows
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
