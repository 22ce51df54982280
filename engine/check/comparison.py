"""Compares a run with a reference, output by output or operator by operator, and backends with each other."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.check.closeness import is_close
from engine.check.decibels import decibels
from engine.check.names import operands_named
from engine.dtypes import Array
from engine.errors import InputError
from engine.graph import RuntimeGraph
from engine.model.operator import RuntimeOperator
from engine.model.ports import Inputs, check_inputs
from engine.run.run import Run
from engine.spec import TensorSpec, Value, arrays_in, tensor_spec

REFERENCE, NUMPY = "the reference", "numpy"
"""References of a comparison."""


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
        backend: what computed the tensor: `native` (compiled program) or `numpy` (reference implementation).
        group: other operators that the same compiled kernel computes, in registers, as `type name`: their own operands
            exist in no memory, and are compared here, at the end of the group.
        seen_at: of such an operand, where the reference lacks the end of its group, the end's name: then a run of numpy
            layers is compared with the reference, and at the end what the kernel computes with numpy. None for all
            others.
        against: what it was compared with: `REFERENCE` (from the caller) or `NUMPY` (reference implementation).
        ratio: signal-to-noise ratio in decibels, infinite where there is no difference; None where shapes differ, and
            for what is no tensor of real numbers.
    """

    operand: str
    operator: str
    type: str
    problem: str | None
    absolute: float | None
    relative: float | None
    backend: str = "numpy"
    group: tuple[str, ...] = ()
    seen_at: str | None = None
    against: str = REFERENCE
    ratio: float | None = None


def compare_outputs(
    graph: RuntimeGraph, inputs: Inputs, expected: Sequence[Array], tolerance: float
) -> list[Difference]:
    """Run a built graph on its backend and compare its outputs, in order.

    Returns:
        One difference per output; one more if the number of outputs differs from the expected one.
    """
    outputs = graph.forward(inputs)
    backend = _backend(graph, inputs)
    names = [port.operand for port in graph.outputs]
    differences = [
        _compare(_Place(name, "", "pnnx.Output", backend), output, wanted, tolerance)
        for name, output, wanted in zip(names, outputs, expected, strict=False)
    ]
    if len(outputs) != len(expected):
        problem = f"{len(outputs)} outputs, the reference has {len(expected)}"
        differences.append(
            Difference(
                operand="outputs",
                operator="",
                type="pnnx.Output",
                problem=problem,
                absolute=None,
                relative=None,
            )
        )
    return differences


def compare_layers(
    graph: RuntimeGraph, inputs: Inputs, reference: Mapping[str, Array], tolerance: float
) -> Iterator[Difference]:
    """Run a built graph on its backend and compare every operand that the reference has, in execution order.

    The first difference with a problem belongs to the first operator that diverges, or to another of its `group`. An
    operand that a compiled kernel keeps in registers is compared at the end of its group, where the reference has that;
    else numpy's value is compared with the reference, and the kernel's with numpy's at the end of the group.

    Args:
        graph: the graph.
        inputs: its inputs.
        reference: arrays by names of operands or operators.
        tolerance: largest difference that is ignored, relative to the value and to the largest of its tensor.

    Raises:
        InputError: the reference has a name that is none of the graph's, or none at all.
    """
    names = operands_named(graph, reference)
    if not names:
        raise InputError("the reference is empty; expected arrays by names of operands or operators")
    given = check_inputs(graph.inputs, inputs)
    specs = [tensor_spec(array) for array in given.values()]
    seen = graph.observable(specs)
    compared = set(names.values())
    ends = {end for name in compared if (end := seen.get(name, name)) not in compared}
    # of an operand that is never stored numpy's value is compared, unless the end of its group is: there the kernel's
    # is
    wanted = {name for name in compared if seen.get(name, name) in (name, *ends)}
    run = graph.run(inputs, capture=[*wanted, *ends])
    plain = Run(graph.plan(specs), capture=ends).execute(given, ()).captured if ends else {}
    groups = _groups(graph, seen)
    for operator, operand in _outputs(graph):
        seen_at = seen.get(operand)
        backend = run.captured_by.get(operand, "numpy")
        place = _Place(operand, operator.name, operator.type, backend, groups.get(operand, ()))
        for name in (name for name, meant in names.items() if meant == operand and operand in wanted):
            there = replace(place, seen_at=None if seen_at == operand else seen_at)
            yield _compare(there, _single(run.captured[operand]), np.asarray(reference[name]), tolerance)
        if operand in ends:
            there = replace(place, against=NUMPY)
            yield _compare(there, _single(run.captured[operand]), _single(plain[operand]), tolerance)


def compare_backends(
    native: RuntimeGraph, plain: RuntimeGraph, inputs: Inputs, tolerance: float
) -> Iterator[Difference]:
    """Run a graph on two backends and compare every operand that exists in both, in execution order.

    Args:
        native: the graph on the backend to check.
        plain: the same on the backend to check against.
        inputs: inputs of both.
        tolerance: as for `compare_layers`.
    """
    seen = native.observable(_specs(native, inputs))
    names = [name for name, end in seen.items() if name == end]
    ours, wanted = native.run(inputs, capture=names), plain.run(inputs, capture=names).captured
    groups = _groups(native, seen)
    for operator, operand in _outputs(native):
        if operand in ours.captured:
            backend = ours.captured_by[operand]
            place = _Place(
                operand, operator.name, operator.type, backend, groups.get(operand, ()), against=NUMPY
            )
            yield _compare(place, _single(ours.captured[operand]), _single(wanted[operand]), tolerance)


@dataclass(frozen=True, slots=True)
class _Place:
    operand: str
    operator: str
    type: str
    backend: str
    group: tuple[str, ...] = ()
    seen_at: str | None = None
    against: str = REFERENCE


def _outputs(graph: RuntimeGraph) -> Iterator[tuple[RuntimeOperator, str]]:
    for operator in graph.execution_order:
        for operand in operator.outputs:
            yield operator, operand.name


def _specs(graph: RuntimeGraph, inputs: Inputs) -> list[TensorSpec]:
    return [tensor_spec(array) for array in check_inputs(graph.inputs, inputs).values()]


def _backend(graph: RuntimeGraph, inputs: Inputs) -> str:
    return "numpy" if graph.prepare(_specs(graph, inputs)) is None else "native"


def _groups(graph: RuntimeGraph, seen: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, for each operand at which others are seen, the operators of those, in execution order."""
    groups: dict[str, list[str]] = {}
    for operator, operand in _outputs(graph):
        end = seen.get(operand, operand)
        if end != operand:
            groups.setdefault(end, []).append(f"{operator.type} {operator.name}")
    return {end: tuple(operators) for end, operators in groups.items()}


def _single(value: Value) -> Array:
    arrays = list(arrays_in(value))
    if len(arrays) == 1:
        return arrays[0]
    members: list[Any] = [*arrays] or [value]
    objects = np.empty(len(members), object)
    for place, member in enumerate(members):
        objects[place] = member
    return objects


def _compare(place: _Place, ours: Array, wanted: Array, tolerance: float) -> Difference:
    if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
        mismatch = f"{ours.dtype}{ours.shape}, {place.against} is {wanted.dtype}{wanted.shape}"
        return _difference(place, mismatch)
    if ours.dtype == object:
        pairs = zip(ours.flat, wanted.flat, strict=True)
        agree = all(_is_same(mine, theirs, tolerance) for mine, theirs in pairs)
        return _difference(place, None if agree else "holds other values")
    with np.errstate(invalid="ignore", over="ignore"):
        absolute = _largest(np.abs(ours.astype(np.complex128) - wanted))
    scale = _largest(np.abs(wanted.astype(np.complex128)))
    problem = None if is_close(ours, wanted, tolerance) else _word(ours, wanted, absolute)
    found = _difference(place, problem, absolute, absolute / scale if scale else absolute)
    return found if ours.dtype.kind == "c" else replace(found, ratio=decibels(ours, wanted))


def _difference(
    place: _Place, problem: str | None, absolute: float | None = None, relative: float | None = None
) -> Difference:
    return Difference(
        operand=place.operand,
        operator=place.operator,
        type=place.type,
        problem=problem,
        absolute=absolute,
        relative=relative,
        backend=place.backend,
        group=place.group,
        seen_at=place.seen_at,
        against=place.against,
    )


def _is_same(ours: object, wanted: object, tolerance: float) -> bool:
    """Whether two members of tuples, or two scalars, agree."""
    if not isinstance(ours, np.ndarray) or not isinstance(wanted, np.ndarray):
        return type(ours) is type(wanted) and ours == wanted
    alike = ours.shape == wanted.shape and ours.dtype == wanted.dtype
    return alike and is_close(ours, wanted, tolerance)


def _word(ours: Array, wanted: Array, absolute: float) -> str:
    counts = [int((~np.isfinite(array)).sum()) for array in (ours, wanted)]
    if not np.array_equal(np.isfinite(ours), np.isfinite(wanted)):
        return f"{counts[0]} elements are not finite, {counts[1]} in what it is compared with"
    return f"differs by up to {absolute:.3g}"


def _largest(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0
