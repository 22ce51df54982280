"""Limit of the text of a graph's expressions, checked before they are parsed.

Every node of an expression is a Python object, and each is visited several times while a graph is built and compiled.
"""

from collections.abc import Iterable

from engine.errors import GraphError, describe_problem
from engine.operator import RuntimeOperator

MAX_CHARACTERS = 1 << 18
"""Characters of all expressions of a graph; exported models hold some ten thousand."""


def check_expression_length(operators: Iterable[RuntimeOperator]) -> None:
    """Check the text of a graph that is read as expressions: that of `pnnx.Expression`, and lists in brackets.

    Raises:
        GraphError: there is too much of it; names the operator with the longest.
    """
    lengths = {operator: _length(operator) for operator in operators}
    total = sum(lengths.values())
    if total > MAX_CHARACTERS:
        longest = max(lengths, key=lengths.__getitem__)
        place = f"{longest.type} {longest.name}"
        problem = f"its expressions have {lengths[longest]:,} characters, those of the graph {total:,}"
        raise GraphError(describe_problem(place, problem, f"at most {MAX_CHARACTERS:,} in a graph"))


def _length(operator: RuntimeOperator) -> int:
    texts = (value for value in operator.params.values() if isinstance(value, str))
    return sum(len(text) for text in texts if "(" in text or "[" in text or "@" in text)
