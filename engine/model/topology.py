"""Linked graph of a model's files, before binding: operators that know their operands, in topological order."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine import pnnx
from engine.errors import GraphError
from engine.model.limits import check_expression_length, check_nesting
from engine.model.operator import OUTPUT, RuntimeOperand, RuntimeOperator
from engine.model.ports import Port, input_ports, output_ports

_CYCLE_SHOWN = 12
"""Operators of a cycle that its error names."""


@dataclass(frozen=True, slots=True)
class LinkedGraph:
    """Operators and operands that know each other.

    Attributes:
        operators: all operators, in file order.
        operands: all operands by name.
        order: all operators in the order in which they run.
        inputs: the graph's inputs.
        outputs: the graph's outputs.
        leaving: names of the operands that the outputs are.
    """

    operators: Sequence[RuntimeOperator] = ()
    operands: Mapping[str, RuntimeOperand] = field(default_factory=dict)
    order: Sequence[RuntimeOperator] = ()
    inputs: tuple[Port, ...] = ()
    outputs: tuple[Port, ...] = ()
    leaving: Sequence[str] = ()

    @property
    def input_names(self) -> list[str]:
        """Names of the operands that the inputs are."""
        return [port.operand for port in self.inputs]


def link_graph(graph: pnnx.Graph) -> LinkedGraph:
    """Link the operators and operands of a file, and order them.

    Raises:
        GraphError: they do not link up, form a cycle, nest tuples without end, or are too long.
    """
    operators, operands = link(graph)
    check_expression_length(operators)
    order = breadth_first_order(operators)
    check_nesting(order)
    return LinkedGraph(
        operators=operators,
        operands=operands,
        order=order,
        inputs=input_ports(operators),
        outputs=output_ports(operators),
        leaving=[operand.name for op in operators if op.type == OUTPUT for operand in op.inputs],
    )


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
