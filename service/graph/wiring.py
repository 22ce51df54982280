"""What a drawing has to know of a graph: its operators in order, and which lead to which."""

from dataclasses import dataclass

from engine import RuntimeGraph, StepsGraph


@dataclass(frozen=True, slots=True)
class Wiring:
    """A graph's operators by place, each after those whose results it takes.

    Attributes:
        names: their names.
        types: their PNNX types.
        edges: place of the producer, place of the consumer and name of the operand, each once.
        has_steps: whether the operators are those of a pipeline's steps, called `STEP/NAME`.
    """

    names: list[str]
    types: list[str]
    edges: list[tuple[int, int, str]]
    has_steps: bool = False


def wiring_of(graph: RuntimeGraph) -> Wiring:
    """Return the wiring of a built graph."""
    operators = list(graph.execution_order)
    places = {operator.name: place for place, operator in enumerate(operators)}
    edges = {
        (place, places[consumer.name], operand.name): None
        for place, operator in enumerate(operators)
        for operand in operator.outputs
        for consumer in operand.consumers
    }
    names, types = [operator.name for operator in operators], [operator.type for operator in operators]
    return Wiring(names, types, list(edges), isinstance(graph, StepsGraph))
