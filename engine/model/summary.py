"""A table of a graph's operators, as text and as HTML for notebooks."""

from collections.abc import Iterator, Sequence
from html import escape

from engine.model.operator import RuntimeOperand, RuntimeOperator

_COLUMNS = ("", "name", "type", "inputs", "outputs", "parameters")
_WIDTHS = (6, 40, 28, 56, 44, 160)
"""Maximum characters of a text cell in each column; a longer one is truncated."""


def operator_table(operators: Sequence[RuntimeOperator]) -> Iterator[str]:
    """Yield the lines of a table of operators: place in the file, name, type, operands as declared, parameters.

    All operators are listed. Columns are as wide as their contents, up to a bound; empty without operators.
    """
    if not operators:
        return
    rows = [_COLUMNS, *map(_cells, operators)]
    texts = [[_cut(cell, most) for cell, most in zip(row, _WIDTHS, strict=True)] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for text in texts:
        cells = [cell.ljust(width) for cell, width in zip(text, widths, strict=True)]
        yield "  ".join([cells[0].strip().rjust(widths[0]), *cells[1:]]).rstrip()


def operator_html(title: str, operators: Sequence[RuntimeOperator]) -> str:
    """Return the same table as HTML, nothing cut short and everything escaped: names come from files."""
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(operator))}</tr>"
        for operator in operators
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if operators else ""
    return f"<p><code>{escape(title)}</code></p>{table}"


def _cells(operator: RuntimeOperator) -> tuple[str, ...]:
    parameters = [f"{key}={_spell(value)}" for key, value in operator.params.items()]
    weights = [
        f"@{key}=({_extents(attribute.shape)}){attribute.dtype}" for key, attribute in operator.attrs.items()
    ]
    cells = (
        str(operator.index),
        operator.name,
        operator.type,
        ", ".join(map(_operand, operator.inputs)),
        ", ".join(map(_operand, operator.outputs)),
        " ".join([*parameters, *weights]),
    )
    return tuple(map(_printable, cells))


def _operand(operand: RuntimeOperand) -> str:
    if operand.type is None:
        return operand.name
    return f"{operand.name} ({_extents(operand.type.shape)}){operand.type.dtype}"


def _extents(shape: Sequence[int | None]) -> str:
    return ",".join("?" if extent is None else str(extent) for extent in shape)


def _spell(value: object) -> str:
    return f"({','.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def _printable(text: str) -> str:
    """Spell characters that a terminal would act upon."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
