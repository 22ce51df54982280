"""Error of each layer in a lower precision, against float32 on the same inputs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from engine.check.decibels import decibels
from engine.graph import RuntimeGraph
from engine.model.ports import Inputs, check_inputs
from engine.precision import Precision
from engine.spec import tensor_spec


@dataclass(frozen=True, slots=True)
class LayerLoss:
    """How an operator's result compares with float32.

    Attributes:
        operator: the operator's name.
        type: its PNNX type.
        precision: what it is computed in.
        operand: where its result can be seen: its own, or that of the group that a kernel computes.
        ratio: signal-to-noise ratio, 10 log10(sum of f32² / sum of difference²), in decibels.
    """

    operator: str
    type: str
    precision: Precision
    operand: str
    ratio: float


def compare_precision(graph: RuntimeGraph, plain: RuntimeGraph, inputs: Inputs) -> Iterator[LayerLoss]:
    """Run a graph in a lower precision and in float32, and compare the layers that are computed in the lower one.

    Args:
        graph: the graph, built.
        plain: the same in float32, built.
        inputs: inputs of both.
    """
    given = check_inputs(graph.inputs, inputs)
    specs = [tensor_spec(array) for array in given.values()]
    graph.prepare(specs)
    seen, also = graph.observable(specs), plain.observable(specs)
    rounded = [
        op for op in graph.execution_order if graph.precisions[op.name] is not Precision.F32 and op.outputs
    ]
    ends = {}
    for operator in rounded:
        result = operator.outputs[0].name
        end = seen.get(result, result)
        ends[operator.name] = end if also.get(end, end) == end else result
    names = list(dict.fromkeys(ends.values()))
    ours, wanted = (each.run(inputs, capture=names).captured for each in (graph, plain))
    for operator in rounded:
        end = ends[operator.name]
        one, other = ours[end], wanted[end]
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            precision = graph.precisions[operator.name]
            yield LayerLoss(operator.name, operator.type, precision, end, decibels(one, other))


def print_precision(losses: Iterable[LayerLoss], least: float) -> bool:
    """Print the ratio of each layer up to the first that is below the least; returns whether one is."""
    count = 0
    for loss in losses:
        count += 1
        place = f"{loss.type} {loss.operator}, at operand {loss.operand!r}"
        print(f"precision  {loss.ratio:.1f} dB  {loss.precision.value}  {place}")
        if not loss.ratio >= least:
            print(f"precision  first below {least:g} dB: {place}")
            return True
    print(f"precision  {count} layers in lower precision than f32, none below {least:g} dB")
    return False
