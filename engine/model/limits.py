"""Limits of the tuples, lists and expressions of a graph, checked before they are traversed.

Twenty tuples that hold the one before twice have a million members, though each takes a line of the file. Every node of
an expression is a Python object, and each is visited several times while a graph is built and compiled.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.errors import ExpressionError, GraphError, describe_problem
from engine.expression import ListNode, OperandNode, parse, postorder
from engine.model.operator import RuntimeOperator

MAX_DEPTH = 32
"""Levels of tuples in a value."""
MAX_MEMBERS = 4096
"""Tensors and scalars in a value, flattened."""
MAX_CHARACTERS = 1 << 18
"""Characters of all expressions of a graph; exported models hold some ten thousand."""

_BUILDERS = ("prim::TupleConstruct", "prim::ListConstruct")
_OPENERS = ("prim::TupleUnpack", "prim::ListUnpack")


class _Nesting(NamedTuple):
    """Levels of tuples in a value, and tensors and scalars in it, flattened; both at the most."""

    depth: int
    members: int


_PLAIN = _Nesting(0, 1)


def check_nesting(order: Sequence[RuntimeOperator]) -> None:
    """Check the tuples and lists of a graph, given its operators in execution order.

    Raises:
        GraphError: one nests too deep or holds too much; names the operator.
    """
    known: dict[str, _Nesting] = {}
    for operator in order:
        nesting = _of_outputs(operator, [known[operand.name] for operand in operator.inputs])
        if nesting.depth > MAX_DEPTH or nesting.members > MAX_MEMBERS:
            place = f"{operator.type} {operator.name}"
            problem = f"a tuple {nesting.depth} levels deep with {nesting.members} members"
            raise GraphError(
                describe_problem(place, problem, f"at most {MAX_DEPTH} levels and {MAX_MEMBERS} members")
            )
        known.update({operand.name: nesting for operand in operator.outputs})


def _of_outputs(operator: RuntimeOperator, inputs: Sequence[_Nesting]) -> _Nesting:
    if operator.type in _BUILDERS:
        return _gather(inputs)
    if operator.type in _OPENERS:
        return max(inputs, default=_PLAIN)
    source = operator.params.get("expr") if operator.type == "pnnx.Expression" else None
    if not isinstance(source, str) or ("(" in source and "[" not in source):
        return _PLAIN
    return _of_expression(source, inputs)


def _of_expression(source: str, inputs: Sequence[_Nesting]) -> _Nesting:
    try:
        root = parse(source)
    except ExpressionError:
        return _PLAIN  # build() reports it with the operator's name
    stack: list[_Nesting] = []
    for node in postorder(root):
        below = [stack.pop() for _ in node.children]
        if isinstance(node, ListNode):
            stack.append(_gather(below))
        elif isinstance(node, OperandNode) and node.index < len(inputs):
            stack.append(inputs[node.index])
        else:
            stack.append(_PLAIN)
    return stack.pop()


def _gather(items: Iterable[_Nesting]) -> _Nesting:
    items = tuple(items)
    deepest = max((item.depth for item in items), default=0)
    return _Nesting(deepest + 1, sum(item.members for item in items))


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
