"""Compares a run with a reference: output by output, or operator by operator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array
from engine.graph import RuntimeGraph
from engine.ports import Inputs
from engine.spec import Value, arrays_in


@dataclass(frozen=True, slots=True)
class Difference:
    """How a tensor compares with its reference.

    Attributes:
        operand: operand name.
        operator: name of the operator that gives it.
        type: that operator's PNNX type.
        problem: why the two count as different, None where they do not.
        absolute: largest absolute difference; None where shapes differ.
        relative: largest absolute difference over the reference's largest absolute value; None likewise.
    """

    operand: str
    operator: str
    type: str
    problem: str | None
    absolute: float | None
    relative: float | None


def compare_outputs(
    graph: RuntimeGraph, inputs: Inputs, expected: Sequence[Array], tolerance: float
) -> list[Difference]:
    """Run a built graph and compare its outputs, in order.

    Returns:
        One difference per output; one more that says so where there are more or fewer outputs than expected.
    """
    outputs = graph.forward(inputs)
    names = [port.operand for port in graph.outputs]
    differences = [
        _compare(name, "", "pnnx.Output", output, wanted, tolerance)
        for name, output, wanted in zip(names, outputs, expected, strict=False)
    ]
    if len(outputs) != len(expected):
        problem = f"{len(outputs)} outputs, the reference has {len(expected)}"
        differences.append(Difference("outputs", "", "pnnx.Output", problem, None, None))
    return differences


def compare_layers(
    graph: RuntimeGraph, inputs: Inputs, reference: Mapping[str, Array], tolerance: float
) -> Iterator[Difference]:
    """Run a built graph and compare every operand that the reference has, in execution order.

    The first difference with a problem belongs to the first operator that diverges.
    """
    wanted = [name for name in reference if name in graph.operands]
    captured = graph.run(inputs, capture=wanted).captured
    for operator in graph.execution_order:
        for operand in operator.outputs:
            if operand.name in captured:
                ours = _single(captured[operand.name])
                expected = np.asarray(reference[operand.name])
                yield _compare(operand.name, operator.name, operator.type, ours, expected, tolerance)


def _single(value: Value) -> Array:
    arrays = list(arrays_in(value))
    return arrays[0] if len(arrays) == 1 else np.asarray(value, dtype=object)


def _compare(
    operand: str, operator: str, kind: str, ours: Array, wanted: Array, tolerance: float
) -> Difference:
    if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
        mismatch = f"{ours.dtype}{ours.shape}, the reference is {wanted.dtype}{wanted.shape}"
        return Difference(operand, operator, kind, mismatch, None, None)
    absolute = _largest(np.abs(ours.astype(np.complex128) - wanted))
    scale = _largest(np.abs(wanted.astype(np.complex128)))
    close = np.allclose(ours, wanted, rtol=tolerance, atol=tolerance, equal_nan=True)
    problem = None if close else f"differs by up to {absolute:.3g}"
    return Difference(operand, operator, kind, problem, absolute, absolute / scale if scale else absolute)


def _largest(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0
