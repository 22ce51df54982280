"""The graphs of a pipeline's steps as one graph that is shown, and does not run itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from engine import pnnx
from engine.errors import StateError
from engine.graph import GraphState, RuntimeGraph
from engine.model.operator import RuntimeOperator
from engine.model.ports import Port
from engine.model.topology import link_graph
from engine.precision import Precision
from engine.run.plan import Plan
from engine.spec import TensorSpec


class StepsGraph(RuntimeGraph):
    """The graphs of several steps as one: each operator and operand is called `STEP/NAME`. It is built, but cannot run.

    Its inputs are those of the first step, under their own names; its outputs are those of all steps, in order.

    Args:
        path: the file that names the steps.
        steps: the built graph of each step by its name, in order.
        links: for inputs of later steps, the operands of earlier ones that they are made of; all by their new names.
    """

    def __init__(
        self, path: Path, steps: Mapping[str, RuntimeGraph], links: Mapping[str, Sequence[str]]
    ) -> None:
        super().__init__(path, path, backend="numpy")
        self._steps = steps
        operators = [
            _renamed(name, operator, links) for name, graph in steps.items() for operator in graph.operators
        ]
        types = {
            f"{name}/{operand.name}": operand.type
            for name, graph in steps.items()
            for operand in graph.operands.values()
        }
        outputs = tuple(
            Port(f"{name}/{port.operator}", f"{name}/{port.operand}", port.shape, port.dtype)
            for name, graph in steps.items()
            for port in graph.outputs
        )
        first = next(iter(steps.values()))
        self._linked = replace(link_graph(pnnx.Graph(operators, types)), inputs=first.inputs, outputs=outputs)
        self._state = GraphState.COMPLETE

    @property
    def precisions(self) -> Mapping[str, Precision]:
        """In what the products of each step's operators are computed, by their new names."""
        return {
            f"{name}/{operator}": precision
            for name, graph in self._steps.items()
            for operator, precision in graph.precisions.items()
        }

    def declared_plan(self, dynamic_dimension: int = 1) -> Plan | None:
        """Return None: only the steps are run."""
        del dynamic_dimension
        return None

    def plan(self, inputs: Sequence[TensorSpec]) -> Plan:
        """Raise StateError."""
        del inputs
        raise self._refusal()

    def _built(self) -> NoReturn:
        raise self._refusal()

    def _refusal(self) -> StateError:
        return StateError(f"the graph of a pipeline does not run; run its steps: {', '.join(self._steps)}")


def _renamed(step: str, operator: RuntimeOperator, links: Mapping[str, Sequence[str]]) -> pnnx.Operator:
    """Return an operator of a step as the whole graph has it; an input with links takes what it is made of."""
    source = operator.source
    outputs = [f"{step}/{name}" for name in source.outputs]
    made_of = [name for output in outputs for name in links.get(output, ())]
    return replace(
        source,
        name=f"{step}/{source.name}",
        inputs=made_of or [f"{step}/{name}" for name in source.inputs],
        outputs=outputs,
        input_names={key: f"{step}/{name}" for key, name in source.input_names.items()},
    )
