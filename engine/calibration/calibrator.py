"""Determines scales: runs a model in float32 on examples, and looks at the tensors that need them."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path

import numpy as np

from engine.calibration.candidates import Candidate, find_candidates
from engine.calibration.examples import Examples
from engine.calibration.histogram import Extent, Histogram
from engine.calibration.shared_scales import scaled_operands, shared_scales
from engine.dtypes import Array
from engine.errors import InputError
from engine.graph import RuntimeGraph
from engine.model.ports import check_inputs
from engine.precision import Precision
from engine.quantization.scheme import Calibration, Quantization
from engine.quantization.sidecar import SCALES
from engine.quantization.tensor_scale import TensorScale
from engine.spec import TensorSpec, tensor_spec

_SHOWN = 10
"""Layers that a message lists."""

METHODS = ("mse", "minmax", "percentile")
"""Calibration methods; the first is the default."""
DEFAULT_PERCENTILE = 99.99

Step = Callable[[str], None]
"""Called with what is done next, before each part that may take seconds."""


class Calibrator:
    """Chooses the scales of a model.

    Args:
        graph: the model in float32, built.
        examples: the calibration data.
        kept: names of the operators that stay in float32.
        step: called before each step.

    Attributes:
        graph: the model in float32.
        examples: the calibration data.
        candidates: the layers that can be computed in integers, in execution order, without `kept`.
        not_finite: operand that has a scale -> in how many examples it held infinities or NaN, where there were any.

    Raises:
        InputError: there are none, or a layer in `kept` is not in the graph.
    """

    def __init__(self, graph: RuntimeGraph, examples: Examples, kept: Collection[str], step: Step) -> None:
        self.graph = graph
        self.examples = examples
        self._step = step
        plan = graph.plan(self.specs_of(0))
        floats = {
            name: spec.rank
            for name, spec in plan.specs.items()
            if isinstance(spec, TensorSpec) and spec.dtype == np.float32
        }
        self._floats = frozenset(floats)
        found = find_candidates(graph.execution_order, floats)
        unknown = set(kept) - {candidate.operator.name for candidate in found}
        if unknown:
            names = ", ".join(map(repr, sorted(unknown)))
            known = [candidate.operator.name for candidate in found]
            shown = f"{', '.join(known[:_SHOWN])}{' …' if known[_SHOWN:] else ''}" if known else "none"
            raise InputError(f"--keep: {names}: no layer that can be in int8; those are {shown}")
        self.candidates = [candidate for candidate in found if candidate.operator.name not in kept]
        if not self.candidates:
            expected = "convolutions or linear layers with constant weights"
            raise InputError(f"{graph.param_path}: has no layers for int8; expected {expected}")
        self.not_finite: dict[str, int] = {}
        self._scales: dict[str, TensorScale] = {}
        self._calibration: Calibration | None = None

    def specs_of(self, place: int) -> list[TensorSpec]:
        """Return the shapes and dtypes of an example."""
        given = check_inputs(self.graph.inputs, self.examples[place])
        return [tensor_spec(array) for array in given.values()]

    def calibrate(self, method: str = METHODS[0], percentile: float = DEFAULT_PERCENTILE) -> None:
        """Run the examples twice, for the extents of tensors and for what lies between; choose scales.

        Args:
            method: one of `METHODS`.
            percentile: percentage of the values within the range of the method "percentile".

        Raises:
            InputError: a tensor that needs a scale has no finite number in any example, or too large ones.
        """
        operands = scaled_operands(self.candidates, self._floats)
        extents = self._extents([operand.name for operand in operands])
        groups = shared_scales(operands, {name: extent.width for name, extent in extents.items()})
        wholes = [reduce(Extent.joined, (extents[name] for name in names)) for names in groups]
        histograms = self._histograms(groups, wholes) if method != "minmax" else map(Histogram, wholes)
        self._step("choosing scales")
        for names, extent, histogram in zip(groups, wholes, histograms, strict=True):
            scale = histogram.scale(method, percentile)
            self._check_scale(names[0], extent, scale)
            self._scales.update(dict.fromkeys(names, scale))
        name = os.fsencode(self.examples.name).decode(errors="replace")  # that of a file need not be UTF-8
        self._calibration = Calibration(name, len(self.examples), method)

    def _extents(self, names: Sequence[str]) -> dict[str, Extent]:
        """Return what each operand's values lie between, and count examples that are not finite."""
        extents = {name: Extent() for name in names}
        for arrays in self._observed("measuring ranges", names):
            for name, array in zip(names, arrays, strict=True):
                if not extents[name].add(array):
                    self.not_finite[name] = self.not_finite.get(name, 0) + 1
        return extents

    def _histograms(self, groups: Sequence[Sequence[str]], extents: Sequence[Extent]) -> list[Histogram]:
        """Return how the values of each group's operands, together, lie in its extent."""
        histograms = [Histogram(extent) for extent in extents]
        chosen = [
            (name, histogram) for names, histogram in zip(groups, histograms, strict=True) for name in names
        ]
        for arrays in self._observed("collecting histograms", [name for name, _ in chosen]):
            for (_, histogram), array in zip(chosen, arrays, strict=True):
                histogram.add(array)
        return histograms

    def _check_scale(self, name: str, extent: Extent, scale: TensorScale) -> None:
        if extent.low > extent.high:
            problem = f"operand {name!r} has no finite number in any of them"
            raise InputError(f"{self.examples.name}: {problem}; expected examples of what the model will see")
        if scale.scale > SCALES[1]:
            problem = f"operand {name!r} has numbers that are too large for int8"
            raise InputError(
                f"{self.examples.name}: {problem}; --keep NAME computes a layer that reads it in float32"
            )

    def quantization(self, layers: Iterable[Candidate]) -> Quantization:
        """Return the quantization of some of the candidates, with the scales that were chosen for all."""
        chosen = list(layers)
        return Quantization(
            layers={candidate.operator.name: candidate.activation for candidate in chosen},
            tensors={
                operand.name: self._scales[operand.name] for operand in scaled_operands(chosen, self._floats)
            },
            calibration=self._calibration,
        )

    def _observed(self, what: str, names: Sequence[str]) -> Iterator[list[Array]]:
        """Yield the operands of these names, for each example."""
        for place in range(len(self.examples)):
            self._step(f"{what}, example {place + 1} of {len(self.examples)}")
            captured = self.graph.run(self.examples[place], capture=names).captured
            yield [_array(captured[name]) for name in names]


def _array(value: object) -> Array:
    if not isinstance(value, np.ndarray):
        raise InputError("an operand that needs a scale is no tensor")
    return value


def open_graph(
    param: Path,
    binary: Path,
    quantization: Quantization | None,
    threads: int,
    backend: str | None,
    precision: Precision = Precision.F32,
) -> RuntimeGraph:
    """Return a built graph with a quantization; without one, in the given precision."""
    graph = RuntimeGraph(
        param, binary, threads=threads, backend=backend, quantization=quantization, precision=precision
    )
    graph.build()
    return graph
