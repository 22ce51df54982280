"""How large the arrays of a response are, before and after the run that makes them."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from engine import Array, KuiperError, RuntimeGraph, TensorSpec, Value

_FLOAT_TEXT = 8
"""Bytes of a float in JSON, with its comma: few tensors of a network have less. Zeros take 4, others up to 24."""
_LEAST_TEXT = 2
"""Bytes of any other number, with its comma, at least."""


class PlannedSize(NamedTuple):
    """How large arrays will be.

    Attributes:
        binary: their bytes.
        text: about their bytes as JSON; no tensor that is known from networks has much less.
    """

    binary: int = 0
    text: int = 0


def planned_size(graph: RuntimeGraph, inputs: Mapping[str, Array], capture: Collection[str]) -> PlannedSize:
    """Return how large the operands will be that a run is to capture.

    Args:
        graph: the graph.
        inputs: operand name -> array.
        capture: names of operands.

    Returns:
        The size of those whose shapes are known before the run; 0 where the graph does not run on such inputs, which
        the run will tell.
    """
    given = [TensorSpec(inputs[port.operand].shape, inputs[port.operand].dtype) for port in graph.inputs]
    try:
        plan = graph.plan(given)
    except KuiperError:
        return PlannedSize()
    specs = [spec for name in capture if name in plan.specs for spec in _tensors(plan.specs[name])]
    return PlannedSize(sum(spec.nbytes for spec in specs), sum(map(_text_bytes, specs)))


def array_bytes(values: Iterable[Value]) -> int:
    """Return the bytes of the arrays among values, and in tuples and lists among them."""
    size = 0
    for value in values:
        if isinstance(value, np.ndarray):
            size += value.nbytes
        elif isinstance(value, tuple | list):
            size += array_bytes(value)
    return size


def _tensors(spec: object) -> list[TensorSpec]:
    """Return the tensors that an operand carries: itself, or those of a tuple or list."""
    if isinstance(spec, TensorSpec):
        return [spec]
    return [tensor for item in spec for tensor in _tensors(item)] if isinstance(spec, tuple | list) else []


def _text_bytes(spec: TensorSpec) -> int:
    """Return about how many bytes a tensor has as JSON."""
    floats = {"f": 1, "c": 2}.get(spec.dtype.kind, 0)
    return spec.size * (floats * _FLOAT_TEXT if floats else _LEAST_TEXT)
