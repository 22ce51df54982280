"""Links the operators of a file by their operands, and orders them."""

from collections import Counter, deque
from collections.abc import Sequence

from engine import pnnx
from engine.errors import GraphError
from engine.operator import RuntimeOperand, RuntimeOperator

_CYCLE_SHOWN = 12
"""Operators of a cycle that its error names."""


def link(graph: pnnx.Graph) -> tuple[list[RuntimeOperator], dict[str, RuntimeOperand]]:
    """Make runtime operators and operands of a PNNX graph and link them.

    Returns:
        The operators in file order, and the operands by name.

    Raises:
        GraphError: an operand has no producer, or two.
    """
    operators = [RuntimeOperator(source, index) for index, source in enumerate(graph.operators)]
    operands: dict[str, RuntimeOperand] = {}
    for operator in operators:
        for name in operator.source.outputs:
            if name in operands:
                first = operands[name].producer.name
                raise GraphError(f"operand {name!r} has two producers: {first!r} and {operator.name!r}")
            operands[name] = RuntimeOperand(name, graph.operands.get(name), operator)
            operator.outputs.append(operands[name])
    for operator in operators:
        for name in operator.source.inputs:
            if name not in operands:
                raise GraphError(f"operand {name!r}, an input of {operator.name!r}, has no producer")
            operands[name].add_consumer(operator)
            operator.inputs.append(operands[name])
    return operators, operands


def breadth_first_order(operators: Sequence[RuntimeOperator]) -> list[RuntimeOperator]:
    """Order operators breadth-first: one is ready when as many inputs have met it as it has.

    Operators that become ready together keep their order among the consumers of the operand,
    which is the order of the file. An operator with unused outputs runs like any other.

    Raises:
        GraphError: some operators wait for one another in a cycle; names them.
    """
    waiting = Counter({operator: len(operator.inputs) for operator in operators})
    ready = deque(operator for operator in operators if not operator.inputs)
    order = []
    while ready:
        operator = ready.popleft()
        order.append(operator)
        for operand in operator.outputs:
            for consumer in operand.consumers:
                waiting[consumer] -= 1
                if waiting[consumer] == 0:
                    ready.append(consumer)
    if len(order) < len(operators):
        raise GraphError(f"cycle: {_describe_cycle([op for op in operators if waiting[op] > 0])}")
    return order


def _describe_cycle(stuck: Sequence[RuntimeOperator]) -> str:
    """Walk back over producers that never became ready until one repeats: that walk is a cycle."""
    members = set(stuck)
    path: dict[RuntimeOperator, None] = {}
    operator = stuck[0]
    while operator not in path:
        path[operator] = None
        operator = next(operand.producer for operand in operator.inputs if operand.producer in members)
    walked = list(path)
    names = [repr(member.name) for member in (operator, *reversed(walked[walked.index(operator) :]))]
    if len(names) > _CYCLE_SHOWN:
        names[_CYCLE_SHOWN // 2 : -_CYCLE_SHOWN // 2] = [f"… {len(names) - _CYCLE_SHOWN} more …"]
    return " -> ".join(names)
