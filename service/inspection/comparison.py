"""Compares a model's run, operator by operator, with one of another version, backend or precision, or with tensors."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from engine import Array, RuntimeGraph, TensorSpec, TraceLevel
from engine.check import Difference, compare_layers
from service.errors import ServiceError
from service.inspection.variant import Variant
from service.repository.loaded_model import LoadedModel

TOLERANCE = 1e-3
"""Differences that `kuiper check` ignores by default."""
_BYTES_AT_ONCE = 64 << 20
"""Maximum bytes of operands that are captured in one run; for more there are several runs."""
_MAX_RUNS = 24
"""Maximum number of such runs."""

Stop = Callable[[], str | None]
"""Returns why a run is to stop, None while it is to go on."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What is compared.

    Attributes:
        model: the model that is served.
        inputs: operand name -> array.
        variant: what it is compared with; None where that is a reference.
        reference: arrays by names of operands or operators, as `kuiper check --layers` takes them.
        tolerance: largest difference that is ignored, relative to the value and to the largest of its tensor.
    """

    model: LoadedModel
    inputs: Mapping[str, Array]
    variant: Variant | None
    reference: Mapping[str, Array]
    tolerance: float = TOLERANCE


def compare(asked: Compared, stop: Stop) -> dict[str, Any]:
    """Run what is to be compared, and return times and differences of each operator.

    Times are those of runs that keep nothing; operands come from others.

    Args:
        asked: what is compared.
        stop: asked before each layer of most runs.

    Raises:
        ServiceError: 413 `comparison_too_large`.
        InputError, LayerError: the inputs do not fit, or the reference names what is not in the graph.
        RunStoppedError: `stop` said so.
    """
    graph, variant = asked.model.graph, asked.variant
    left = _times(graph, asked.inputs, stop)
    right = {} if variant is None else _times(variant.graph, asked.inputs, stop)
    worst: dict[str, Difference] = {}
    first: str | None = None
    for difference in _differences(asked, stop):
        if difference.problem is not None and first is None:
            first = difference.operator
        known = worst.get(difference.operator)
        if known is None or _rank(difference) > _rank(known):
            worst[difference.operator] = difference
    names = [(operator.name, operator.type) for operator in graph.execution_order]
    return {
        "model": asked.model.name,
        "version": asked.model.version,
        "tolerance": asked.tolerance,
        "left": {"label": f"{asked.model.name}, version {asked.model.version}"},
        "right": {"label": "the reference" if variant is None else variant.label},
        "operators": [
            {"name": name, "type": its_type, "left_ms": left.get(name), "right_ms": right.get(name)}
            | _describe(worst.get(name))
            for name, its_type in names
        ],
        "first": first,
        "agree": first is None,
        "compared": len(worst),
    }


def first_problem(asked: Compared, stop: Stop) -> Difference | None:
    """Return the difference of the first operator that differs by more than the tolerance; None where none does.

    Args:
        asked: what is compared.
        stop: asked before each layer of most runs.

    Raises:
        ServiceError, InputError, LayerError, RunStoppedError: as `compare`.
    """
    return next((one for one in _differences(asked, stop) if one.problem is not None), None)


def _times(graph: RuntimeGraph, inputs: Mapping[str, Array], stop: Stop) -> dict[str, float]:
    """Return the milliseconds of each operator, from the second of two runs: the first may compile."""
    graph.run(inputs, stop=stop)
    trace = graph.run(inputs, trace=TraceLevel.ON, stop=stop).trace
    return {} if trace is None else {layer.name: layer.duration_us / 1e3 for layer in trace.layers}


def _differences(asked: Compared, stop: Stop) -> Iterator[Difference]:
    graph, variant = asked.model.graph, asked.variant
    if variant is None:
        yield from compare_layers(graph, asked.inputs, asked.reference, asked.tolerance)
        return
    for names in _portions(graph, variant.graph, asked.inputs):
        captured = variant.graph.run(asked.inputs, capture=names, stop=stop).captured
        # an operand may be named as an operator is
        reference = {
            f"operand:{name}": value for name, value in captured.items() if isinstance(value, np.ndarray)
        }
        if reference:
            yield from compare_layers(graph, asked.inputs, reference, asked.tolerance)


def _portions(graph: RuntimeGraph, other: RuntimeGraph, inputs: Mapping[str, Array]) -> list[list[str]]:
    """Return the operands that can be seen in both graphs, in order, few enough at a time to be kept."""
    specs = [TensorSpec(inputs[port.operand].shape, inputs[port.operand].dtype) for port in graph.inputs]
    seen, there, plan = graph.observable(specs), other.observable(specs), graph.plan(specs)
    portions: list[list[str]] = [[]]
    size = 0
    for operand in (operand for operator in graph.execution_order for operand in operator.outputs):
        name, spec = operand.name, plan.specs.get(operand.name)
        if not seen.get(name) == name == there.get(name) or not isinstance(spec, TensorSpec):
            continue
        if portions[-1] and size + spec.nbytes > _BYTES_AT_ONCE:
            portions.append([])
            size = 0
        portions[-1].append(name)
        size += spec.nbytes
    if len(portions) > _MAX_RUNS:
        message = (
            f"the operands to compare would take {len(portions)} runs; the maximum is {_MAX_RUNS}: send a "
            "smaller input"
        )
        raise ServiceError(413, "comparison_too_large", message, {"limit": _MAX_RUNS, "unit": "runs"})
    return [portion for portion in portions if portion]


def _rank(difference: Difference) -> tuple[bool, float]:
    """Return which difference of an operator's operands is shown."""
    return difference.problem is not None, difference.relative or 0.0


def _describe(difference: Difference | None) -> dict[str, Any]:
    if difference is None:
        return {
            "max_abs": None,
            "max_rel": None,
            "snr_db": None,
            "problem": None,
            "backend": None,
            "group": [],
        }
    return {
        "max_abs": _finite(difference.absolute),
        "max_rel": _finite(difference.relative),
        "snr_db": _finite(difference.ratio),
        "problem": difference.problem,
        "backend": difference.backend,
        "group": list(difference.group),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None
