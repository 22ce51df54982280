"""Observable tensors of a program: their memory, and the moment of a run at which they are complete."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.compiler.graph import (
    Concatenation,
    Constant,
    Fallback,
    LoweredGraph,
    Node,
    Placeholder,
    Reshape,
    Tensor,
)
from engine.compiler.memory.view import View
from engine.compiler.passes.storage import Copy
from engine.quantization.tensor_scale import TensorScale
from engine.run.plan import Plan

BEFORE_ALL = -1
"""Moment of what is there before a program does anything: inputs and constants."""


@dataclass(frozen=True, slots=True)
class Observable:
    """A value of a run that can be observed.

    Attributes:
        moment: what completes it: the number of a kernel call or numpy step, in their order, or `BEFORE_ALL`. Memory
            is shared by tensors that are not alive at once, so that a tensor is sure to be there only right after it.
        view: its memory; None for a value of the run itself.
        integers: scale and number of channels of a tensor of 8-bit integers; else None.
        is_bf16: whether it is of bfloat16, two channels to an element.
    """

    moment: int
    view: View | None = None
    integers: tuple[TensorScale, int] | None = None
    is_bf16: bool = False

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of the tensor, each channel counted; None of a value of the run itself."""
        if self.view is None or self.integers is None:
            return None if self.view is None else self.view.shape
        return self.view.shape[0], self.integers[1], *self.view.shape[2:]


@dataclass(frozen=True, slots=True)
class Observables:
    """Observable tensors of a program's runs.

    Attributes:
        by_slot: slot -> where and when its value can be observed, for values that exist.
        ends: slot of a tensor that never leaves a kernel's registers, or of a list that is taken apart unmade -> slot
            of what that kernel writes in the end, or of the list's first member.
    """

    by_slot: Mapping[int, Observable]
    ends: Mapping[int, int]


def written_by(node: Node) -> tuple[View, ...]:
    """Return the places that the kernels of a node fill."""
    if isinstance(node, Copy):
        return (node.target,)
    return tuple(tensor.view for tensor in node.outputs if tensor.view is not None)


def find_observables(
    plan: Plan, graph: LoweredGraph, written: Mapping[View, int], given: Mapping[int, int]
) -> Observables:
    """Return which operands of a plan exist in the runs of its program.

    Args:
        plan: the plan.
        graph: its graph, every tensor placed.
        written: place -> moment of the last call that fills it.
        given: slot -> moment of the numpy step that gives its value.
    """
    moments = _moments(graph, written, given)
    found: dict[int, Observable] = {}
    for slot in set(plan.slots.values()) - _unmade(plan, graph):
        tensor = graph.tensors.get(slot)
        if slot in graph.constants:
            found[slot] = Observable(BEFORE_ALL)
        elif tensor is None or isinstance(tensor.node, Placeholder):
            found[slot] = Observable(given.get(slot, BEFORE_ALL))
        elif tensor in moments:
            integers = None if tensor.scale is None else (tensor.scale, tensor.channels)
            found[slot] = Observable(moments[tensor], tensor.view, integers, tensor.is_bf16)
    return Observables(found, _ends(plan, graph, found))


def _unmade(plan: Plan, graph: LoweredGraph) -> set[int]:
    """Return the slots of what no run makes: lists whose members kernels give or read, unused results."""
    steps = [step for node in graph.nodes if not isinstance(node, Fallback | Copy) for step in node.steps]
    return {slot for step in steps for slot in plan.steps[step].outputs if slot not in graph.tensors}


def _moments(graph: LoweredGraph, written: Mapping[View, int], given: Mapping[int, int]) -> dict[Tensor, int]:
    """Return, for every tensor that exists, the moment from which on it is whole."""
    moments: dict[Tensor, int] = {}
    for node in graph.nodes:
        if isinstance(node, Placeholder):
            moments[node.output] = given.get(node.slot, BEFORE_ALL)
        elif isinstance(node, Constant):
            moments[node.output] = BEFORE_ALL
        elif isinstance(node, Concatenation):
            moments[node.output] = _whole_from(node, written, moments)
        else:
            for tensor, view in ((tensor, tensor.view) for tensor in node.outputs):
                if view is not None and view in written:
                    moments[tensor] = written[view]
                elif view is not None and isinstance(node, Reshape):
                    moments[tensor] = _seen_from(node, view, written, moments)
    return moments


def _whole_from(node: Concatenation, written: Mapping[View, int], moments: Mapping[Tensor, int]) -> int:
    """Return the moment of a concatenation's last part, written in place or copied."""
    whole = node.output.view
    if whole is None:
        raise ValueError("a concatenation without a place; expected one")
    start, last = 0, BEFORE_ALL
    for tensor in node.inputs:
        part = whole.sliced(node.axis, start, tensor.shape[node.axis])
        start += tensor.shape[node.axis]
        last = max(last, moments[tensor] if tensor.view == part else written[part])
    return last


def _seen_from(node: Reshape, view: View, written: Mapping[View, int], moments: Mapping[Tensor, int]) -> int:
    """Return the moment of another look at a tensor: the tensor's own, or that of the copy that the look is at."""
    (source,) = node.inputs
    if source.view is not None and source.view.buffer is view.buffer:
        return moments[source]
    return max(moment for place, moment in written.items() if place.buffer is view.buffer)


def _ends(plan: Plan, graph: LoweredGraph, found: Mapping[int, Observable]) -> dict[int, int]:
    slots = {tensor: slot for slot, tensor in graph.tensors.items()}
    ends: dict[int, int] = {}
    for node in graph.nodes:
        if isinstance(node, Copy | Fallback) or not node.outputs:
            continue
        end = slots.get(node.output)
        given = [slot for step in node.steps for slot in plan.steps[step].outputs]
        ends.update((slot, end) for slot in given if slot not in found and end in found and end is not None)
    return ends
