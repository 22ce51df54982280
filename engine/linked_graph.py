"""Linked graph of a model's files, before binding: operators and operands in topological order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine import pnnx
from engine.expression_length import check_expression_length
from engine.nesting import check_nesting
from engine.operator import OUTPUT, RuntimeOperand, RuntimeOperator
from engine.ports import Port, input_ports, output_ports
from engine.topology import breadth_first_order, link


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
