"""Names of operands, and of operators for their outputs: PyTorch's module names where the exporter preserves them."""

from collections.abc import Collection
from difflib import get_close_matches

from engine.errors import InputError, describe_problem
from engine.graph import RuntimeGraph

OPERAND, OPERATOR = "operand:", "operator:"
"""Prefixes of a name that an operand and an operator share."""
_SHOWN = 8
_NEAR = 3


def operands_named(graph: RuntimeGraph, names: Collection[str]) -> dict[str, str]:
    """Return the operand that each name refers to.

    A name is an operand's, or an operator's, for the one operand that it gives (that a `pnnx.Output` takes); one of
    several is `name.0`, `name.1` … The prefix `operand:` or `operator:` resolves a name that both have.

    Raises:
        InputError: a name is unknown (the error lists similar names), or refers to more than one operand.
    """
    given = _given_by(graph)
    unknown = [name for name in names if not _meant(graph, given, name)]
    if unknown:
        raise InputError(_unknown(graph, given, unknown, len(names)))
    return {name: _only(graph, given, name) for name in names}


def _given_by(graph: RuntimeGraph) -> dict[str, list[str]]:
    """Return operator name -> operands that it gives, and `name.0`, `name.1` … where they are several."""
    found: dict[str, list[str]] = {}
    for operator in graph.operators:
        operands = [operand.name for operand in operator.outputs or operator.inputs]
        found.setdefault(operator.name, []).extend(operands)
        if len(operands) > 1:
            for place, operand in enumerate(operands):
                found.setdefault(f"{operator.name}.{place}", []).append(operand)
    return {name: operands for name, operands in found.items() if operands}


def _meant(graph: RuntimeGraph, given: dict[str, list[str]], name: str) -> list[str]:
    """Return all operands that a name may refer to."""
    if name.startswith(OPERAND) and name.removeprefix(OPERAND) in graph.operands:
        return [name.removeprefix(OPERAND)]
    if name.startswith(OPERATOR) and name.removeprefix(OPERATOR) in given:
        return given[name.removeprefix(OPERATOR)]
    return [*([name] if name in graph.operands else []), *given.get(name, [])]


def _only(graph: RuntimeGraph, given: dict[str, list[str]], name: str) -> str:
    meant = list(dict.fromkeys(_meant(graph, given, name)))
    if len(meant) == 1:
        return meant[0]
    if name in graph.operands:
        problem = f"an operand has this name, and an operator that gives {', '.join(map(repr, given[name]))}"
        raise InputError(describe_problem(repr(name), problem, f"{OPERAND + name!r} or {OPERATOR + name!r}"))
    numbered = " or ".join(repr(f"{name}.{place}") for place in range(len(meant)))
    raise InputError(describe_problem(repr(name), f"the operator gives {len(meant)} operands", numbered))


def _unknown(graph: RuntimeGraph, given: dict[str, list[str]], unknown: list[str], count: int) -> str:
    known = [*graph.operands, *given]
    near = list(dict.fromkeys(m for n in unknown[:_SHOWN] for m in get_close_matches(n, known, _NEAR)))
    shown = ", ".join(map(repr, unknown[:_SHOWN])) + (" …" if len(unknown) > _SHOWN else "")
    place = "no name" if len(unknown) == count else f"{len(unknown)} of {count} names"
    problem = f"{place} of the reference is in the graph: {shown}"
    if len(unknown) < count:
        problem = f"{place} of the reference are not in the graph: {shown}"
    hint = f"; near: {', '.join(map(repr, near))}" if near else ""
    return f"{problem}{hint}; expected names of operands, or of operators as the .param has them"
