"""`kuiper expression TEXT`: shows how a `pnnx.Expression` is read, and what it gives for given numbers."""

import json as json_text
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.tree import Tree

from engine import Array
from engine.expression import ExpressionNode, evaluate, operands, parse, reverse_polish, tokenize
from service.commands.failure import CommandUsageError
from service.commands.output import Json, add_rows, console, print_json, table

EXAMPLE = 'kuiper expression "add(@0,mul(@1,0.5))" 3 "[4, 8]"'


def run(
    text: Annotated[str, typer.Argument(help="the expression, as it stands after expr= in a .param file")],
    values: Annotated[
        list[str] | None,
        typer.Argument(help="values of @0, @1 …: numbers, or JSON arrays as [1, 2.5]", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Show the tokens, the tree and the reverse Polish notation of a pnnx.Expression, and its value for given numbers.

    Whole numbers are int64 tensors and others float32, as PyTorch would make them.
    """
    node = parse(text)
    result = _value(node, [_array(value) for value in values]) if values else None
    tokens = [(token.position, token.kind.name, token.text) for token in tokenize(text)]
    polish = reverse_polish(node)
    if json:
        print_json(
            {
                "expression": text,
                "tokens": [dict(zip(("position", "kind", "text"), token, strict=True)) for token in tokens],
                "tree": _described(node),
                "reverse_polish": polish,
                "operands": sorted(operands(node)),
                "value": result,
            }
        )
        return
    out = console()
    out.print(add_rows(table("at", "token", "text", numbers=["at"]), tokens))
    out.print()
    out.print(_drawn(node))
    out.print()
    out.print(f"reverse Polish  {' '.join(polish)}", soft_wrap=True)
    if result is not None:
        out.print(f"value           {_shown(result)}", soft_wrap=True)


def _array(text: str) -> Array:
    """Read a number or a JSON array.

    Raises:
        CommandUsageError: it is neither.
    """
    try:
        value = np.asarray(json_text.loads(text))
    except ValueError as error:
        raise CommandUsageError(f"value {text!r}: is not a number; expected 2.5, or [1, 2.5]") from error
    if value.dtype.kind not in "bif":
        raise CommandUsageError(f"value {text!r}: holds values other than numbers; expected 2.5, or [1, 2.5]")
    return value.astype(np.float32) if value.dtype.kind == "f" else value


def _value(node: ExpressionNode, values: Sequence[Array]) -> Any:
    known = max(operands(node), default=-1) + 1
    if known != len(values):
        raise CommandUsageError(f"{len(values)} values are given; expected {known}, for @0 to @{known - 1}")
    with np.errstate(all="ignore"):  # what is infinite or no number is so in PyTorch as well
        return evaluate(node, values)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=64)
    return str(value)


def _drawn(node: ExpressionNode) -> Tree:
    """Return the tree; built without recursion, as expressions may be nested deeply."""
    root = Tree(node.label)
    pending = [(node, root)]
    while pending:
        above, drawn = pending.pop()
        pending += [(child, drawn.add(child.label)) for child in above.children]
    return root


def _described(node: ExpressionNode) -> dict[str, Any]:
    root: dict[str, Any] = {"label": node.label}
    pending = [(node, root)]
    while pending:
        above, described = pending.pop()
        children: list[dict[str, Any]] = [{"label": child.label} for child in above.children]
        if children:
            described["children"] = children
        pending += zip(above.children, children, strict=True)
    return root
