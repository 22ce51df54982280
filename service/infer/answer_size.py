"""How large the arrays of an answer are, before and after the run that makes them."""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from engine import Array, KuiperError, RuntimeGraph, TensorSpec, Value


def planned_bytes(graph: RuntimeGraph, inputs: Mapping[str, Array], capture: Collection[str]) -> int:
    """Return the bytes of the operands that a run is to capture.

    Args:
        graph: the graph.
        inputs: operand name -> array.
        capture: names of operands.

    Returns:
        The bytes of those whose shapes are known before the run; 0 where the graph does not run on such inputs, which
        the run will tell.
    """
    specs = [TensorSpec(inputs[port.operand].shape, inputs[port.operand].dtype) for port in graph.inputs]
    try:
        plan = graph.plan(specs)
    except KuiperError:
        return 0
    return sum(_spec_bytes(plan.specs[name]) for name in capture if name in plan.specs)


def array_bytes(values: Iterable[Value]) -> int:
    """Return the bytes of the arrays among values, and in tuples and lists among them."""
    size = 0
    for value in values:
        if isinstance(value, np.ndarray):
            size += value.nbytes
        elif isinstance(value, tuple | list):
            size += array_bytes(value)
    return size


def _spec_bytes(spec: object) -> int:
    if isinstance(spec, TensorSpec):
        return spec.nbytes
    return sum(map(_spec_bytes, spec)) if isinstance(spec, tuple | list) else 0
