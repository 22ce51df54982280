"""Compares an exported model with its source: the outputs, and every layer's result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine import Array, RuntimeGraph
from engine.check import Difference, compare_outputs
from service.export.source import Result, Source

TOLERANCE = 1e-3
"""Largest difference that is ignored, relative to the value and to the largest of its tensor."""

_ROUNDING = 1e-6
"""Absolute difference of probabilities that float32 explains: 1 / (1 + exp(-x)) is rounded as a number near 1 is."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How an exported model compares with its source, on one set of inputs.

    Attributes:
        shapes: of the inputs.
        outputs: how each output compares.
        layers: results of layers that were looked at.
        found: how many of them the source computes as well, on its own way.
        largest: largest relative difference of those.
        first_missing: the first operator whose result the source has nowhere, while it has all that went into it; None
            where there is none. An operator that computes the same in other steps may be one.
        line: where the source computes what went into that operator.
    """

    shapes: tuple[tuple[int, ...], ...]
    outputs: tuple[Difference, ...]
    layers: int
    found: int
    largest: float
    first_missing: str | None
    line: str

    @property
    def agrees(self) -> bool:
        """Whether all outputs agree; the results of layers tell only where an output that does not goes wrong."""
        return not any(difference.problem for difference in self.outputs)

    def problem(self, runtime: str) -> str:
        """Say which output differs, and from which operator on."""
        wrong = next(difference for difference in self.outputs if difference.problem)
        wanted = f"what {runtime} computes on {shapes_text(self.shapes)}"
        text = f"output {wrong.operand} of the exported model is not {wanted}: it {wrong.problem}"
        if self.first_missing is None:
            return text
        after = f", after {self.line}" if self.line else ""
        return f"{text}. The first result that {runtime} has nowhere is that of {self.first_missing}{after}"


def shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    """Return shapes as text, as `(1,3,224,224)`."""
    return " ".join(f"({','.join(map(str, shape))})" for shape in shapes)


def compare(
    graph: RuntimeGraph, source: Source, arrays: Sequence[Array], expected: Sequence[Array], tolerance: float
) -> Agreement:
    """Run a built graph and its source on the same inputs, and compare them.

    Raises:
        KuiperError: the graph does not run on these inputs.
    """
    inputs = list(arrays)
    compared = compare_outputs(graph, inputs, list(expected), tolerance)
    wanted: list[Array | None] = [*expected, None]  # one more difference tells of another number of outputs
    outputs = tuple(_excused(*pair) for pair in zip(compared, wanted, strict=False))
    specs = [(operator, operand.name) for operator in graph.execution_order for operand in operator.outputs]
    names = [name for operator, name in specs if operator.type not in ("pnnx.Input", "pnnx.Attribute")]
    captured = graph.run(inputs, capture=names).captured
    ours = {name: value for name, value in captured.items() if isinstance(value, np.ndarray) and value.ndim}
    theirs = _by_shape(source.results(arrays))
    matches = {name: _match(value, theirs, tolerance) for name, value in ours.items()} if theirs else {}
    first, line = _first_missing(graph, matches)
    found = [match for match in matches.values() if match is not None]
    return Agreement(
        shapes=tuple(array.shape for array in arrays),
        outputs=outputs,
        layers=len(matches),
        found=len(found),
        largest=max((difference for difference, _ in found), default=0.0),
        first_missing=first,
        line=line,
    )


def _excused(difference: Difference, wanted: Array | None) -> Difference:
    """Return a difference without its problem, where it is that of probabilities close to 0, in float32."""
    if difference.problem is None or difference.absolute is None or wanted is None:
        return difference
    are_probabilities = wanted.dtype == np.float32 and bool(((wanted >= 0) & (wanted <= 1)).all())
    is_rounding = are_probabilities and difference.absolute <= _ROUNDING
    # measured by 1, as probabilities are
    return replace(difference, problem=None, relative=difference.absolute) if is_rounding else difference


_Shape = tuple[int, ...]
_Match = tuple[float, str]


@dataclass(frozen=True, slots=True)
class _Theirs:
    """A result of the source, and what differences from it are measured by."""

    result: Result
    scale: float


def _by_shape(results: Sequence[Result]) -> Mapping[_Shape, list[_Theirs]]:
    found: dict[_Shape, list[_Theirs]] = {}
    for result in results:
        theirs = _Theirs(result, _largest(result.array) or 1.0)
        found.setdefault(result.array.shape, []).append(theirs)
    return found


def _match(value: Array, theirs: Mapping[_Shape, list[_Theirs]], tolerance: float) -> _Match | None:
    """Return how far a result is from the source's nearest of that shape, and its line; None if none agrees."""
    best: _Match | None = None
    for candidate in theirs.get(value.shape, ()):
        difference = _difference(value, candidate, tolerance)
        if difference <= tolerance and (best is None or difference < best[0]):
            best = difference, candidate.result.line
    return best


def _difference(ours: Array, theirs: _Theirs, tolerance: float) -> float:
    """Return the largest difference relative to the largest magnitude; infinite for other kinds of numbers."""
    wanted = theirs.result.array
    if ours.dtype.kind != wanted.dtype.kind:
        return np.inf
    if ours.dtype.kind in "biu":
        return 0.0 if np.array_equal(ours, wanted) else np.inf
    few = (slice(0, 1),) * (ours.ndim - 1)
    for part in (few, ()):  # most pairs are told apart by a few of their elements
        with np.errstate(invalid="ignore", over="ignore"):
            apart = _largest(ours[part] - wanted[part]) / theirs.scale
        if apart > tolerance or not np.array_equal(np.isfinite(ours[part]), np.isfinite(wanted[part])):
            return np.inf
    return apart


def _largest(values: Array) -> float:
    if values.dtype.kind in "biu":
        return float(values.max(initial=0))
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _first_missing(graph: RuntimeGraph, matches: Mapping[str, _Match | None]) -> tuple[str | None, str]:
    """Return the first operator whose result was not found while what goes into it was, and the line before it."""
    for operator in graph.execution_order:
        if any(operand.name in matches and matches[operand.name] is None for operand in operator.outputs):
            before = [matches.get(operand.name) for operand in operator.inputs if operand.name in matches]
            if None not in before:
                lines = [match[1] for match in before if match is not None]
                return f"{operator.type} {operator.name}", lines[-1] if lines else ""
    return None, ""
