"""The compiler's graph of a plan."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.compiler.graph.node import FLOAT, Node, Tensor
from engine.compiler.graph.sources import Constant, Placeholder


@dataclass(frozen=True, slots=True)
class Guard:
    """Bounds of an integer input that kernels assume; for other values the reference implementation runs.

    Attributes:
        slot: the input's.
        least: its least element.
        largest: its largest element.
    """

    slot: int
    least: int
    largest: int


@dataclass(slots=True)
class LoweredGraph:
    """The computation of a plan, as nodes in a valid execution order.

    Attributes:
        nodes: the nodes.
        tensors: slot -> its tensor, for slots that the compiler's kernels read or write.
        constants: slot -> array or scalar that no input changes; nothing computes them in a run.
        folded: steps whose work is done at build.
        leaving: slots that leave the graph.
        ends: slot -> step by which it leaves.
        guards: slot of an input -> the bounds that kernels assume.
    """

    nodes: list[Node] = field(default_factory=list)
    tensors: dict[int, Tensor] = field(default_factory=dict)
    constants: dict[int, object] = field(default_factory=dict)
    folded: set[int] = field(default_factory=set)
    leaving: tuple[int, ...] = ()
    ends: dict[int, int] = field(default_factory=dict)
    guards: dict[int, Guard] = field(default_factory=dict)

    def dtypes(self) -> dict[int, np.dtype[Any]]:
        """Return slot -> dtype of tensors that kernels compute as float32, and operands carry as something else."""
        return {
            slot: tensor.dtype
            for slot, tensor in self.tensors.items()
            if tensor.dtype != FLOAT and not isinstance(tensor.node, Constant | Placeholder)
        }

    def fused_into(self) -> dict[int, int]:
        """Return, for each step that no node begins with, the step whose node does it (a step may take several)."""
        first = {node.steps[0] for node in self.nodes if node.steps}
        pairs = ((step, node.steps[0]) for node in self.nodes for step in node.steps[1:])
        return {step: into for step, into in pairs if step not in first}

    def fused(self) -> dict[int, tuple[int, ...]]:
        """Return, for each step whose node also does other steps, those other steps."""
        fused: dict[int, tuple[int, ...]] = {}
        for step, into in self.fused_into().items():
            fused[into] = (*fused.get(into, ()), step)
        return fused

    def dissolve(self) -> None:
        """Clear the graph, so that its weights are freed as soon as nothing else refers to them."""
        removed = (node for tensor in self.tensors.values() for node in (tensor.node, *tensor.users))
        for node in {*self.nodes, *removed}:
            node.inputs.clear()
            node.outputs.clear()
        self.nodes.clear()
        self.tensors.clear()
