"""Checks how operators and operands are linked: one producer per operand, one name per operator."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.pnnx.model import Operator


@dataclass(frozen=True, slots=True)
class LinkFault:
    """A link error at the operator `index`."""

    index: int
    problem: str
    expected: str


def find_fault(operators: Sequence[Operator]) -> LinkFault | None:
    """Return the first fault, or None. Cycles and the order of operators are not checked."""
    names: dict[str, int] = {}
    producers: dict[str, str] = {}
    for index, operator in enumerate(operators):
        if names.setdefault(operator.name, index) != index:
            return LinkFault(index, f"second operator named {operator.name!r}", "unique operator names")
        for operand in operator.outputs:
            if operand in producers:
                first = producers[operand]
                problem = f"operand {operand!r} is produced by {first!r} and again by {operator.name!r}"
                return LinkFault(index, problem, "one producer")
            producers[operand] = operator.name
    for index, operator in enumerate(operators):
        for operand in operator.inputs:
            if operand not in producers:
                problem = f"operator {operator.name!r} reads operand {operand!r}, which no operator produces"
                return LinkFault(index, problem, "one producer")
    return None
