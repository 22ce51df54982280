"""A `pnnx.Expression` taken apart: tokens, tree, reverse Polish notation, and its value step by step."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from pydantic import ValidationError

from engine import Array, ExpressionError
from engine.expression import Expression, ExpressionNode, operands, parse, reverse_polish, tokenize
from service.config.limits import too_large
from service.config.wording import problem_of
from service.errors import ServiceError, shown
from service.inspection.schemas import ExpressionQuestion

_MAX_BYTES = 1 << 16
"""Maximum bytes of a question."""
_DEEPEST = 100
_MAX_ELEMENTS = 64
"""Maximum elements of a value: what is broadcast of such has a few thousand."""
_MAX_DIMENSIONS = 2
_MAX_SHOWN = 64
_STACK_SHOWN = 12
"""Topmost values of the stack that each step shows."""
_MAX_ITEMS_SHOWN = 8
"""Numbers and tensors of a list, those of lists in it included, that its text shows."""


def read_question(body: bytes) -> ExpressionQuestion:
    """Read the body of a request.

    Raises:
        ServiceError: 413 `body_too_large`, 400 `invalid_json`, 422 `invalid_parameter`.
    """
    if len(body) > _MAX_BYTES:
        raise too_large("body_too_large", "the body", len(body), _MAX_BYTES, "bytes")
    try:
        return ExpressionQuestion.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        place = {"line": error.lineno, "column": error.colno}
        raise ServiceError(400, "invalid_json", f"the body is not JSON: {error}", place) from error
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        name = str(fault["loc"][0]) if fault["loc"] else "the body"
        message = f'{name}: {problem_of(fault)}; expected {{"text": EXPRESSION, "values": [NUMBER, …]}}'
        raise ServiceError(422, "invalid_parameter", message, {"name": name}) from error


def describe_expression(text: str, values: Sequence[Any]) -> dict[str, Any]:
    """Return what an expression consists of, and how it is computed where values are given.

    Args:
        text: the expression.
        values: `@0`, `@1` …: numbers, or lists of numbers. Whole numbers are int64 tensors and others float32, as
            PyTorch would make them.

    Raises:
        ServiceError: 422 `invalid_expression`, with the position in the text; 422 `invalid_value`.
    """
    try:
        tokens = list(tokenize(text))
        node = parse(text)
        tree = _describe(node)
        given = [_array(value, place) for place, value in enumerate(values)]
        steps = list(_steps(node, given)) if given or not operands(node) else []
    except ExpressionError as error:
        problem = str(error).partition("\n")[0]
        details = {"position": error.position, "expression": text, "problem": problem}
        message = f"the expression cannot be computed, at character {error.position}: {problem}"
        raise ServiceError(422, "invalid_expression", message, details) from error
    return {
        "expression": text,
        "tokens": [
            {
                "text": token.text,
                "kind": token.kind.name.lower(),
                "start": token.position,
                "end": token.position + len(token.text),
            }
            for token in tokens
        ],
        "tree": tree,
        "postfix": reverse_polish(node),
        "operands": sorted(operands(node)),
        "steps": steps,
        "value": steps[-1]["stack"][-1] if steps else None,
    }


def _array(value: Any, place: int) -> Array:
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "bif" or array.size > _MAX_ELEMENTS or array.ndim > _MAX_DIMENSIONS:
        message = (
            f"the value of @{place} is {shown(value)}; expected a number, a list or a list of lists of numbers, "
            f"at most {_MAX_ELEMENTS} of them"
        )
        raise ServiceError(422, "invalid_value", message, {"operand": place})
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _steps(node: ExpressionNode, given: Sequence[Array]) -> Iterator[dict[str, Any]]:
    """Yield each step with the topmost values of the stack after it."""
    shown: list[dict[str, Any]] = []
    with np.errstate(all="ignore"):  # what is infinite or no number is so in PyTorch as well
        for done, stack in Expression(node).steps(given):
            # a step changes only what it takes and the value that it leaves on top: the others were described before
            shown[len(stack) - 1 :] = [_show(stack[-1])]
            yield {
                "token": done.label,
                "start": done.position,
                "taken": len(done.children),
                "depth": len(stack),
                "stack": shown[-_STACK_SHOWN:],
            }


def _show(value: Any) -> dict[str, Any]:
    """Return a value with its shape and type; of a large one the first elements."""
    if not isinstance(value, np.ndarray):
        return {"shape": None, "dtype": type(value).__name__, "text": _text(value)}
    numbers = [_number(number) for number in value.reshape(-1)[:_MAX_SHOWN].tolist()]
    return {"shape": list(value.shape), "dtype": str(value.dtype), "data": numbers, "text": _text(value)}


def _text(value: Any) -> str:
    """Return a value as text; of a long list the beginning."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", threshold=_MAX_SHOWN, precision=6)
    return _list_text(value, iter(range(_MAX_ITEMS_SHOWN))) if isinstance(value, tuple) else str(value)


def _list_text(items: tuple[Any, ...], places: Iterator[int]) -> str:
    """Return a list as text, with an ellipsis where no place is left; it is nested less deep than Python recurses."""
    parts = []
    for item in items:
        if isinstance(item, tuple):
            parts.append(_list_text(item, places))
        elif next(places, None) is None:
            parts.append("…")
            break
        else:
            parts.append(_text(item))
    return f"({', '.join(parts)})"


def _number(number: Any) -> Any:
    is_plain = isinstance(number, bool | int) or (isinstance(number, float) and np.isfinite(number))
    return number if is_plain else str(number)


def _describe(node: ExpressionNode) -> dict[str, Any]:
    """Return the tree as nested objects; built without recursion."""
    root: dict[str, Any] = {"text": node.label, "start": node.position}
    pending = [(node, root, 1)]
    while pending:
        above, described, depth = pending.pop()
        if depth > _DEEPEST:
            raise above.error(f"is nested deeper than the {_DEEPEST} levels that are shown")
        described["children"] = [{"text": child.label, "start": child.position} for child in above.children]
        pending += [
            (child, below, depth + 1)
            for child, below in zip(above.children, described["children"], strict=True)
        ]
    return root
