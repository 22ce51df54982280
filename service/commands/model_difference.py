"""What differs between two models: operators, parameters, weights, and results on the same inputs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from engine import Array, KuiperError, RuntimeGraph, RuntimeOperator

_CAPTURED = 32
"""Operands of which the results are held at once."""


@dataclass(frozen=True, slots=True)
class PairDifference:
    """How two operators compare.

    Attributes:
        name: the one's name; None where only the other model has it.
        other: the other's name; None where only the one has it.
        type: PNNX type.
        changes: what differs in the graph, in words.
        weights: largest difference of an attribute over its largest element; None where there are none to compare.
        results: the same for what the operators give.
        problem: why results cannot be compared, in words; None where they can, or there is nothing to compare.
    """

    name: str | None
    other: str | None
    type: str
    changes: tuple[str, ...] = ()
    weights: float | None = None
    results: float | None = None
    problem: str | None = None

    def differs(self, tolerance: float) -> bool:
        """Return whether anything differs by more than a tolerance; what is no number does."""
        values = [value for value in (self.weights, self.results) if value is not None]
        return bool(self.changes or self.problem) or any(not value <= tolerance for value in values)


def compare_models(
    first: RuntimeGraph, second: RuntimeGraph, inputs: Sequence[Array]
) -> list[PairDifference]:
    """Compare two built graphs, in execution order; what only the second has comes last.

    Args:
        first: the one.
        second: the other.
        inputs: arrays that both run on.

    Raises:
        InputError, LayerError: the first does not run on the inputs.
    """
    pairs = list(_pairs(first.execution_order, second.execution_order))
    results = _results(first, second, [pair for pair in pairs if pair[0] and pair[1]], inputs)
    return [_compare(one, other, results) for one, other in pairs]


_Pair = tuple[RuntimeOperator | None, RuntimeOperator | None]


def _pairs(first: Sequence[RuntimeOperator], second: Sequence[RuntimeOperator]) -> Iterator[_Pair]:
    """Yield operators in pairs: of the same name, else of the same type at the same place among those left."""
    named = {operator.name: operator for operator in second}
    shared = {operator.name for operator in first} & named.keys()
    left = [operator for operator in first if operator.name not in shared]
    right = [operator for operator in second if operator.name not in shared]
    matcher = SequenceMatcher(None, [one.type for one in left], [one.type for one in right], autojunk=False)
    partners: dict[str, RuntimeOperator] = {}
    for block in matcher.get_matching_blocks():
        for step in range(block.size):
            partners[left[block.a + step].name] = right[block.b + step]
    taken = {operator.name for operator in partners.values()}
    for operator in first:
        yield operator, named.get(operator.name) if operator.name in shared else partners.get(operator.name)
    yield from ((None, operator) for operator in right if operator.name not in taken)


def _compare(
    one: RuntimeOperator | None, other: RuntimeOperator | None, results: Mapping[str, float | str]
) -> PairDifference:
    if one is None or other is None:
        found = one or other
        type_ = "" if found is None else found.type
        change = "only in the second" if one is None else "only in the first"
        names = None if one is None else one.name, None if other is None else other.name
        return PairDifference(*names, type_, (change,))
    values = [results[operand.name] for operand in one.outputs if operand.name in results]
    numbers = [value for value in values if isinstance(value, float)]
    problems = [value for value in values if isinstance(value, str)]
    return PairDifference(
        name=one.name,
        other=other.name,
        type=one.type,
        changes=tuple(_changes(one, other)),
        weights=_worst([_relative(a, b) for a, b in _attributes(one, other)]),
        results=_worst(numbers),
        problem=problems[0] if problems else None,
    )


def _changes(one: RuntimeOperator, other: RuntimeOperator) -> Iterator[str]:
    if one.type != other.type:
        yield f"type {one.type} -> {other.type}"
    for name in sorted(one.params.keys() | other.params.keys()):
        before, after = one.params.get(name, _ABSENT), other.params.get(name, _ABSENT)
        if before != after:
            yield f"{name} {before} -> {after}"
    for name in sorted(one.attrs.keys() | other.attrs.keys()):
        shapes = [each.attrs[name].shape if name in each.attrs else _ABSENT for each in (one, other)]
        if shapes[0] != shapes[1]:
            yield f"@{name} {shapes[0]} -> {shapes[1]}"


_ABSENT = "absent"


def _attributes(one: RuntimeOperator, other: RuntimeOperator) -> Iterator[tuple[Array, Array]]:
    for name in one.attrs.keys() & other.attrs.keys():
        first, second = one.attrs[name], other.attrs[name]
        if first.shape == second.shape and "null" not in (first.dtype, second.dtype):
            yield first.array(), second.array()


def _results(
    first: RuntimeGraph, second: RuntimeGraph, pairs: Sequence[_Pair], inputs: Sequence[Array]
) -> dict[str, float | str]:
    """Return for each operand of the first graph how it compares with its partner: a number, or why there is none."""
    names = [
        (ours.name, theirs.name)
        for one, other in pairs
        if one is not None and other is not None
        for ours, theirs in zip(one.outputs, other.outputs, strict=False)
    ]
    compared: dict[str, float | str] = {}
    for start in range(0, len(names), _CAPTURED):
        chunk = names[start : start + _CAPTURED]
        ours = first.run(list(inputs), capture=[name for name, _ in chunk]).captured
        try:
            theirs = second.run(list(inputs), capture=[name for _, name in chunk]).captured
        except KuiperError as error:
            return {name: f"the second does not run: {error}" for name, _ in names[:1]}
        compared |= {name: _compared(ours[name], theirs[partner]) for name, partner in chunk}
    return compared


def _compared(ours: Any, theirs: Any) -> float | str:
    if not isinstance(ours, np.ndarray) or not isinstance(theirs, np.ndarray):
        return 0.0 if repr(ours) == repr(theirs) else "differs"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} -> {theirs.shape}"
    return _relative(ours, theirs)


def _relative(ours: Array, theirs: Array) -> float:
    """Return the largest difference over the largest element; NaN and infinities agree where both have the same."""
    if ours.size == 0 or np.array_equal(ours, theirs, equal_nan=ours.dtype.kind in "fc"):
        return 0.0
    wide = np.complex128 if "c" in (ours.dtype.kind, theirs.dtype.kind) else np.float64
    a, b = ours.astype(wide), theirs.astype(wide)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore", over="ignore"):
        worst = float(np.abs(np.where(same, 0, a - b)).max())
        finite = np.abs(a[np.isfinite(a)])
    largest = float(finite.max()) if finite.size else 0.0
    return worst / largest if largest else worst


def _worst(values: Sequence[float]) -> float | None:
    """Return the largest value; of values among which some are no numbers, one of these."""
    return float(np.max(values)) if values else None
