"""Compares an exported model with its source: the outputs, and the tensors on the way to them.

What counts as a difference follows from the network. The source is run a second time with the last bit of each weight
and of each input flipped: two numbers that float32 hardly distinguishes. What changes by that is what rounding may do
here, and an exported model may be off by `TIMES` as much.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from engine import Array, RuntimeGraph, RuntimeOperand, RuntimeOperator
from engine.check import magnitude
from service.export.source import Result, Source
from service.export.trial import flip_last_bits

TIMES = 10.0
"""How many times the change by flipped bits a tensor may be off."""
_STEPS = 3
"""Operators in a row whose results may have no match, as the exporter computes some formulas in other steps."""
_EPSILON = 2.0**-23
_FEW, _PART = 64, 1 << 18
"""Elements that are compared first, as they distinguish most pairs, and at once, as their differences take memory."""
_KEPT = ("pnnx.Input", "pnnx.Attribute")
"""Types of operators that compute nothing."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A tensor of the source, and how exactly it is known.

    Attributes:
        array: its values.
        line: where the source computes it, for people; empty where that is not known.
        scale: the magnitude of its ordinary elements.
        rounding: by how much flipped bits change these.
        share: by what share of itself they change a larger element: a masked score, an outlier.
        flips: how many elements they change, of a tensor of integers.
    """

    array: Array
    line: str
    scale: float
    rounding: float
    share: float
    flips: int

    def distance(self, ours: Array, tolerance: float) -> float:
        """Return how far values are off, as a multiple of what rounding may do; infinite where nothing explains it.

        Args:
            ours: values in the order of these, of any shape.
            tolerance: largest difference that is ignored, relative to the magnitude of the tensor.
        """
        wanted, ours = self.array.reshape(-1), ours.reshape(-1)
        if ours.dtype.kind in "biu" or wanted.dtype.kind in "biu":
            return self._mismatches(ours, wanted)
        unit = max(self.rounding, tolerance * self.scale / TIMES)
        share = max(self.share, tolerance / TIMES)
        worst = 0.0
        for first, end in pairwise((0, _FEW, *range(_PART, wanted.size, _PART), max(wanted.size, _FEW))):
            part = slice(first, end)
            worst = max(worst, _worst(ours[part], wanted[part], self.scale, unit, share))
            if worst > TIMES:
                return worst
        return worst

    def _mismatches(self, ours: Array, wanted: Array) -> float:
        if (ours.dtype.kind in "biu") != (wanted.dtype.kind in "biu"):
            return np.inf
        count = int(np.count_nonzero(ours != wanted))
        return count / self.flips if self.flips else (np.inf if count else 0.0)


def _worst(ours: Array, wanted: Array, scale: float, unit: float, share: float) -> float:
    finite = np.isfinite(wanted)
    if not np.array_equal(ours[~finite], wanted[~finite], equal_nan=True):
        return np.inf
    ours, wanted = ours[finite], wanted[finite]
    with np.errstate(invalid="ignore", over="ignore"):
        off, size = np.abs(ours - wanted), np.abs(wanted)
        allowed = np.where(size <= scale, unit, size * share)
        worst = float(np.max(off / allowed, initial=0.0))
    return worst if np.isfinite(worst) else np.inf


def _expected(result: Result, moved: Array) -> Expected:
    array = result.array
    if array.dtype.kind in "biu":
        flips = int(np.count_nonzero(array != moved)) if array.shape == moved.shape else 0
        return Expected(array, result.line, 1.0, 0.0, 0.0, flips)
    scale = magnitude(array) or 1.0
    size = np.abs(array)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.nan_to_num(np.abs(moved - array), nan=0.0, posinf=0.0)
    ordinary = size <= scale
    larger = np.isfinite(array) & ~ordinary
    rounding = float(np.max(off[ordinary], initial=0.0))
    share = float(np.max(off[larger] / size[larger], initial=0.0))
    return Expected(array, result.line, scale, max(rounding, _EPSILON * scale), max(share, _EPSILON), 0)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a source computes on one set of inputs.

    Attributes:
        inputs: the inputs.
        outputs: its outputs.
        tensors: tensors on the way to them, by how many elements they have; none where the source does not say.
    """

    inputs: Sequence[Array]
    outputs: Sequence[Expected]
    tensors: Mapping[int, Sequence[Expected]]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the inputs."""
        return tuple(array.shape for array in self.inputs)


def reference_of(source: Source, inputs: Sequence[Array]) -> Reference:
    """Run a source twice, as it is and with last bits flipped.

    Raises:
        ExportError: it does not run on these inputs.
    """
    outputs = [Result(array, "") for array in source.run(inputs)]
    results = source.results(inputs)
    with source.perturbed():
        flipped = list(map(flip_last_bits, inputs))
        moved = source.run(flipped)
        moved_results = [result.array for result in source.results(flipped)]
    tensors: dict[int, list[Expected]] = {}
    if len(moved_results) == len(results):
        for result, other in zip(results, moved_results, strict=True):
            tensors.setdefault(result.array.size, []).append(_expected(result, _like(other, result.array)))
    return Reference(
        inputs,
        [_expected(result, _like(other, result.array)) for result, other in zip(outputs, moved, strict=True)],
        tensors,
    )


def _like(moved: Array, array: Array) -> Array:
    """Return what became of an array, or the array where that has another shape: of as many boxes as were found."""
    return moved if moved.shape == array.shape else array


@dataclass(frozen=True, slots=True)
class OutputAgreement:
    """How an output compares.

    Attributes:
        name: its operand in the graph.
        absolute: largest difference; None where shapes or kinds of numbers differ.
        relative: the same, relative to the magnitude of the tensor.
        times: the same, as a multiple of what rounding may do.
        problem: what is wrong with it; None where nothing is.
    """

    name: str
    absolute: float | None
    relative: float | None
    times: float
    problem: str | None


@dataclass(frozen=True, slots=True)
class Missing:
    """The first of several operators whose results the source has nowhere, while it has all that goes into it.

    Attributes:
        operator: its name.
        type: its PNNX type.
        line: where the source computes what goes into it; empty where that is not known.
        problem: what is wrong with its shape; empty where its values are.
    """

    operator: str
    type: str
    line: str
    problem: str = ""

    def __str__(self) -> str:
        place = f"{self.type} {self.operator}"
        return f"{place}{f', after {self.line}' if self.line else ''}{f': {self.problem}' if self.problem else ''}"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How an exported model compares with its source, on one set of inputs.

    Attributes:
        shapes: of the inputs.
        outputs: how each output compares.
        tensors: tensors on the way that were looked at.
        matched: how many of them the source computes as well.
        largest: largest relative difference of those.
        missing: where the two part, in execution order.
    """

    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[OutputAgreement, ...]
    tensors: int
    matched: int
    largest: float
    missing: tuple[Missing, ...]

    @property
    def outputs_agree(self) -> bool:
        """Whether all outputs agree."""
        return not any(output.problem for output in self.outputs)

    @property
    def agrees(self) -> bool:
        """Whether all outputs agree, and all tensors on the way."""
        return self.outputs_agree and not self.missing

    def problem(self, runtime: str) -> str:
        """Say which output differs, and from which operator on."""
        wrong = next((output for output in self.outputs if output.problem), None)
        where = f"on {shapes_text(self.shapes)}"
        first = (
            f"the first tensor without a match in {runtime} is that of {self.missing[0]}"
            if self.missing
            else ""
        )
        if wrong is None:
            return f"the exported model gives other results than {runtime} {where}: {first}"
        text = f"output {wrong.name} of the exported model differs from that of {runtime} {where}: it {wrong.problem}"
        return f"{text}; {first}" if first else text


def shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return shapes as text, as `(1,3,224,224)`."""
    return " ".join(f"({','.join(map(str, shape))})" for shape in shapes)


def compare(graph: RuntimeGraph, reference: Reference, tolerance: float = 0.0) -> Agreement:
    """Run a built graph on the inputs of a reference, and compare its tensors.

    Args:
        graph: the graph; it runs on the numpy backend, which rounds as PyTorch does.
        reference: what is right.
        tolerance: largest difference that is ignored, relative to the magnitude of the tensor.

    Raises:
        KuiperError: the graph does not run on these inputs.
    """
    operators = [operator for operator in graph.execution_order if operator.type not in _KEPT]
    names = [operand.name for operator in operators for operand in operator.outputs]
    run = graph.run(list(reference.inputs), capture=names)
    ours = {
        name: value for name, value in run.captured.items() if isinstance(value, np.ndarray) and value.ndim
    }
    matches: dict[str, tuple[float, Expected] | None] = {}
    if reference.tensors:
        matches = {name: _match(value, reference.tensors, tolerance) for name, value in ours.items()}
    found = [match for match in matches.values() if match is not None]
    return Agreement(
        shapes=reference.shapes,
        outputs=tuple(_outputs(graph, run.outputs, reference.outputs, tolerance)),
        tensors=len(matches),
        matched=len(found),
        largest=max((_relative(times, expected) for times, expected in found), default=0.0),
        missing=tuple(_missing(operators, ours, matches)),
    )


def _relative(times: float, expected: Expected) -> float:
    return times * expected.rounding / expected.scale


def _outputs(
    graph: RuntimeGraph, outputs: Sequence[Array], wanted: Sequence[Expected], tolerance: float
) -> Iterator[OutputAgreement]:
    names = [port.operand for port in graph.outputs]
    for name, ours, expected in zip(names, outputs, wanted, strict=False):
        yield _output(name, ours, expected, tolerance)
    if len(outputs) != len(wanted):
        yield OutputAgreement(
            "count", None, None, np.inf, f"is one of {len(outputs)}; expected {len(wanted)}"
        )


def _output(name: str, ours: Array, expected: Expected, tolerance: float) -> OutputAgreement:
    wanted = expected.array
    if ours.shape != wanted.shape or ours.dtype != wanted.dtype:
        problem = f"is {ours.dtype}{list(ours.shape)}; expected {wanted.dtype}{list(wanted.shape)}"
        return OutputAgreement(name, None, None, np.inf, problem)
    times = expected.distance(ours, tolerance)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(np.subtract(ours, wanted, dtype=np.result_type(wanted.dtype, np.float64)))
    absolute = float(np.nan_to_num(off, nan=0.0, posinf=0.0).max(initial=0.0))
    relative = absolute / expected.scale
    if times <= TIMES:
        return OutputAgreement(name, absolute, relative, times, None)
    explained = f"rounding in float32 explains {TIMES * expected.rounding:.3g}"
    return OutputAgreement(name, absolute, relative, times, f"is off by up to {absolute:.3g}, {explained}")


def _match(
    value: Array, tensors: Mapping[int, Sequence[Expected]], tolerance: float
) -> tuple[float, Expected] | None:
    """Return the source's nearest tensor with these values in this order, and how far it is; None if none agrees.

    Shapes may differ: the exporter leaves out reshapes around a linear layer.
    """
    best: tuple[float, Expected] | None = None
    for expected in tensors.get(value.size, ()):
        times = expected.distance(value, tolerance)
        if times <= TIMES and (best is None or times < best[0]):
            best = times, expected
    return best


def _missing(
    operators: Sequence[RuntimeOperator],
    ours: Mapping[str, Array],
    matches: Mapping[str, tuple[float, Expected] | None],
) -> Iterator[Missing]:
    lengths = _lengths(operators, matches)
    for operator in operators:
        wrong = [problem for operand in operator.outputs if (problem := _shape_problem(operand, ours))]
        before = [matches[operand.name] for operand in operator.inputs if operand.name in matches]
        if wrong or (lengths[operator.name] > _STEPS and None not in before):
            line = next((match[1].line for match in reversed(before) if match is not None), "")
            yield Missing(operator.name, operator.type, line, wrong[0] if wrong else "")


def _lengths(
    operators: Sequence[RuntimeOperator], matches: Mapping[str, tuple[float, Expected] | None]
) -> dict[str, float]:
    """Return over how many operators, from each on, results have no match; infinite where an output has none."""
    lengths: dict[str, float] = {}
    for operator in reversed(operators):
        absent = [operand for operand in operator.outputs if matches.get(operand.name, ()) is None]
        after = [consumer for operand in absent for consumer in operand.consumers]
        rest = (np.inf if each.type == "pnnx.Output" else lengths.get(each.name, 0) for each in after)
        lengths[operator.name] = 1 + max(rest, default=0) if absent else 0
    return lengths


def _shape_problem(operand: RuntimeOperand, ours: Mapping[str, Array]) -> str:
    declared, value = operand.type, ours.get(operand.name)
    if declared is None or declared.dtype == "null" or value is None:
        return ""
    if len(declared.shape) == value.ndim and all(map(_fits, declared.shape, value.shape)):
        return ""
    expected = ",".join("?" if size is None else str(size) for size in declared.shape)
    return f"its shape is {list(value.shape)}; expected ({expected}), as the exporter declares"


def _fits(declared: int | None, size: int) -> bool:
    return declared is None or declared == size
