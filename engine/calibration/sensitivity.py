"""Time and error of each layer in int8, and which layers to keep in float32."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns

import numpy as np

from engine.calibration.agreement import Likeness, LikenessSum, Outcome, compare_runs
from engine.calibration.calibrator import Calibrator, Step
from engine.calibration.candidates import Candidate
from engine.dtypes import Array
from engine.graph import RuntimeGraph
from engine.quantization.figures import RunFigures
from engine.quantization.scheme import Quantization
from engine.run.trace import TraceLevel

_TIMED_RUNS = 7

Opener = Callable[[Quantization | None], RuntimeGraph]
"""Builds the model with a quantization; in bfloat16 without one."""


@dataclass(frozen=True, slots=True)
class LayerReport:
    """Effect of int8 on one layer.

    Attributes:
        candidate: the layer.
        likeness: comparison of its result with float32, all layers in int8, where its kernel writes it.
        alone: comparison of the model's outputs with this layer alone in int8.
        f32_us: microseconds of its kernel in float32, the median of a few runs.
        bf16_us: the same in bfloat16, all layers in it that would gain by it.
        int8_us: the same in int8, all layers in int8.
    """

    candidate: Candidate
    likeness: Likeness
    alone: Outcome
    f32_us: float
    bf16_us: float
    int8_us: float

    @property
    def harm(self) -> float:
        """The layer's effect on the outputs: layers with the largest stay in float32 first."""
        return self.alone.error


class Sensitivity:
    """Measures a calibrated model.

    Args:
        calibrator: the model in float32, calibrated.
        opener: builds it with other quantizations.
        places: the examples that it is measured on.
        step: called before each step.
    """

    def __init__(self, calibrator: Calibrator, opener: Opener, places: Sequence[int], step: Step) -> None:
        self._calibrator = calibrator
        self._open = opener
        self._places = places
        self._step = step
        step("running examples in float32")
        self._references = [self._calibrator.graph.forward(self._calibrator.examples[p]) for p in places]
        self._rounded = opener(None)

    def outcome(self, layers: Sequence[Candidate]) -> Outcome:
        """Compare the outputs with float32 when these layers are in int8."""
        graph = self._open(self._calibrator.quantization(layers))
        runs = [graph.forward(self._calibrator.examples[place]) for place in self._places]
        return compare_runs(runs, self._references)

    def reports(self) -> list[LayerReport]:
        """Return each layer's error in int8, and its effect on the outputs."""
        candidates = self._calibrator.candidates
        ours = self._open(self._calibrator.quantization(candidates))
        self._step("comparing layers with float32")
        likenesses = self._likenesses(ours)
        self._step("timing layers")
        times = [self._times(graph) for graph in (self._calibrator.graph, self._rounded, ours)]
        reports = []
        for done, candidate in enumerate(candidates):
            name = candidate.operator.name
            self._step(f"measuring layer {done + 1} of {len(candidates)} in int8, {name}")
            reports.append(
                LayerReport(
                    candidate=candidate,
                    likeness=likenesses[name],
                    alone=self.outcome([candidate]),
                    f32_us=times[0][name],
                    bf16_us=times[1][name],
                    int8_us=times[2][name],
                )
            )
        return reports

    def run_figures(self, layers: Sequence[Candidate], processor: str) -> RunFigures:
        """Measure a run in each precision, with these layers in int8.

        Args:
            layers: those in int8.
            processor: what this is measured on.
        """
        graphs = (self._calibrator.graph, self._rounded, self._open(self._calibrator.quantization(layers)))
        inputs: list[Array] = self._calibrator.examples[self._places[0]]
        least = [np.inf] * len(graphs)
        for _ in range(1 + _TIMED_RUNS):  # the first of each compiles
            for place, graph in enumerate(graphs):
                started = perf_counter_ns()
                graph.forward(inputs)
                least[place] = min(least[place], (perf_counter_ns() - started) / 1e3)
        return RunFigures(processor, *least)

    def _likenesses(self, ours: RuntimeGraph) -> dict[str, Likeness]:
        """Compare the results of all layers with float32, where a kernel of both graphs writes them."""
        specs = self._calibrator.specs_of(self._places[0])
        plain = self._calibrator.graph
        ends = [graph.observable(specs) for graph in (ours, plain)]
        places: dict[str, str] = {}
        for candidate in self._calibrator.candidates:
            result = candidate.operator.outputs[0].name
            first, second = (seen.get(result, result) for seen in ends)
            places[candidate.operator.name] = first if first == second else result
        names = list(dict.fromkeys(places.values()))
        sums = {name: LikenessSum() for name in names}
        for place in self._places:
            inputs = self._calibrator.examples[place]
            values, wanted = (graph.run(inputs, capture=names).captured for graph in (ours, plain))
            for name in names:
                one, other = values[name], wanted[name]
                if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                    sums[name].add(one, other)
        return {operator: sums[name].likeness for operator, name in places.items()}

    def _times(self, graph: RuntimeGraph) -> dict[str, float]:
        """Return operator -> microseconds of its kernel, the median of a few runs."""
        inputs: list[Array] = self._calibrator.examples[self._places[0]]
        found: dict[str, list[float]] = {}
        for _ in range(_TIMED_RUNS):
            trace = graph.run(inputs, trace=TraceLevel.ON).trace
            for layer in () if trace is None else trace.layers:
                found.setdefault(layer.name, []).append(layer.duration_us)
        return {name: median(times) for name, times in found.items()}


def choose_layers(
    sensitivity: Sensitivity,
    reports: Sequence[LayerReport],
    is_enough: Callable[[Outcome], bool],
) -> tuple[list[Candidate], Outcome]:
    """Return the layers that may be in int8 so that the outputs are good enough, and how those compare.

    The most harmful layers stay in float32, as few of them as a search by halves finds.

    Args:
        sensitivity: measures the model.
        reports: reports of all layers.
        is_enough: whether outputs are good enough.
    """
    by_harm = sorted(reports, key=lambda report: -report.harm)

    def without(count: int) -> list[Candidate]:
        kept = {report.candidate for report in by_harm[:count]}
        return [report.candidate for report in reports if report.candidate not in kept]

    layers = without(0)
    outcome = sensitivity.outcome(layers)
    if is_enough(outcome):
        return layers, outcome
    few, many = 0, len(by_harm)
    layers, outcome = [], Outcome(1.0, 0.0, np.inf)
    while many - few > 1:
        middle = (few + many) // 2
        tried = without(middle)
        found = sensitivity.outcome(tried)
        if is_enough(found):
            many, layers, outcome = middle, tried, found
        else:
            few = middle
    return layers, outcome
