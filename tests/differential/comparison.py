"""Runs a case on both backends and reports where they differ.

How far they may differ follows from the case: float32 rounds at 6e-8 of a number, some thousand roundings add up to
some 1e-6 of the largest; Winograd's transforms lose a further digit in each convolution. So results may be off by
`SHARE` of the largest element of the output, and, since a division or an exponential makes more of it, by `GROWTH`
times what numpy itself answers otherwise when weights and inputs are off by `DISTURBANCE` of themselves.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np

from engine import KuiperError, RuntimeGraph
from engine.compiler.emit.target import Target
from engine.compiler.program import programs
from engine.dtypes import Array
from tests.differential.case import GraphCase, disturbed
from tests.differential.layouts import LAYOUTS
from tests.differential.opening import open_graph

SHARE = 2e-5
GROWTH = 20.0
DISTURBANCE = 1e-6
Outcome = list[Array] | KuiperError


@dataclass(frozen=True, slots=True)
class Mode:
    """How the native backend runs a case.

    Attributes:
        target: what it compiles for.
        threads: threads that share a run, besides one.
        layout: how inputs lie in memory, a key of `LAYOUTS`.
    """

    target: Target
    threads: int = 2
    layout: str = "contiguous"

    def __str__(self) -> str:
        return f"{self.target.name}, {self.threads} threads, {self.layout} inputs"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        kind: what kind of thing: "difference", "threads", "exception", "refusal", "written", "compiler".
        text: what was seen.
    """

    kind: str
    text: str


@dataclass(slots=True)
class Tally:
    """What was compared.

    Attributes:
        runs: runs that were compared, by target.
        refused: runs that both backends refused.
        largest: largest difference, as a share of what was allowed.
    """

    runs: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    largest: float = 0.0


@contextmanager
def compiling_for(target: Target) -> Iterator[None]:
    """Let all graphs compile for a target, whatever the machine's own is."""
    with patch.object(programs, "host_target", lambda: target):
        yield


def compare(case: GraphCase, modes: Sequence[Mode], tally: Tally | None = None) -> Finding | None:
    """Run a case on numpy and in each mode; returns the first thing that is not as it should be."""
    tally = Tally() if tally is None else tally
    with tempfile.TemporaryDirectory() as folder:
        try:
            plain = opened(case, Path(folder), "numpy")
            off = opened(case, Path(folder), "numpy", disturbance=DISTURBANCE)
        except KuiperError:
            tally.refused += 1
            return None
        wanted = [expectation(case, run, plain, off) for run in range(len(case.runs))]
        for mode in modes:
            finding = _compare_mode(case, Path(folder), mode, wanted, tally)
            if finding is not None:
                return Finding(finding.kind, f"{mode}: {finding.text}")
    return None


def opened(
    case: GraphCase, folder: Path, backend: str, threads: int = 1, disturbance: float = 0.0
) -> RuntimeGraph:
    """Return a case's graph, built, its weights off by a share of themselves."""
    path = case.write(folder, f"case{disturbance}", disturbance)
    return open_graph(path, backend, threads=threads)


def forward(graph: RuntimeGraph, inputs: list[Array]) -> Outcome:
    """Run a graph; returns its outputs, or the error that it raises."""
    try:
        return graph.forward(inputs)
    except KuiperError as error:
        return error


def expectation(
    case: GraphCase, run: int, plain: RuntimeGraph, off: RuntimeGraph
) -> tuple[list[Array], Outcome, list[float]]:
    """Return a run's inputs, what numpy makes of them, and how far each output may be off."""
    inputs = case.arrays(run)
    with np.errstate(all="ignore"):
        wanted = forward(plain, inputs)
        if isinstance(wanted, KuiperError):
            return inputs, wanted, []
        others = forward(off, [disturbed(array, DISTURBANCE) for array in inputs])
    if isinstance(others, KuiperError):
        raise others
    return inputs, wanted, [tolerance(*pair) for pair in zip(wanted, others, strict=True)]


def tolerance(wanted: Array, other: Array) -> float:
    """Return how far an output may be off, given what it is when weights and inputs are disturbed."""
    if wanted.dtype.kind != "f" or not wanted.size:
        return 0.0
    finite = np.isfinite(wanted) & np.isfinite(other)
    largest = float(np.max(np.abs(wanted), where=finite, initial=0.0))
    grown = float(np.max(np.abs(wanted - other), where=finite, initial=0.0))
    return SHARE * largest + GROWTH * grown + 1e-30


def _compare_mode(
    case: GraphCase,
    folder: Path,
    mode: Mode,
    wanted: Sequence[tuple[list[Array], Outcome, list[float]]],
    tally: Tally,
) -> Finding | None:
    with compiling_for(mode.target):
        alone = opened(case, folder, "native")
        shared = opened(case, folder, "native", mode.threads)
        for run, (inputs, expected, allowed) in enumerate(wanted):
            given = [LAYOUTS[mode.layout](array) for array in inputs]
            try:
                outputs, others = forward(alone, given), forward(shared, given)
            except Exception as error:  # whatever it is, it is what is looked for
                return Finding("exception", f"run {run}: {type(error).__name__}: {error}")
            finding = _failed(alone, shared)
            finding = finding or difference(outputs, expected, allowed, tally) or _unequal(outputs, others)
            if finding is None and not all(map(_same, given, inputs)):
                finding = Finding("written", "an input was written to")
            if finding is not None:
                return Finding(finding.kind, f"run {run}: {finding.text}")
            if isinstance(expected, KuiperError):
                tally.refused += 1
            else:
                tally.runs[mode.target.name] = tally.runs.get(mode.target.name, 0) + 1
    return None


def _failed(*graphs: RuntimeGraph) -> Finding | None:
    """Report programs that could not be compiled: numpy ran in their place, and numpy agrees with itself."""
    refused = [str(refusal) for graph in graphs for refusal in graph.verification.refused]
    return Finding("compiler", refused[0]) if refused else None


def difference(outputs: Outcome, expected: Outcome, allowed: Sequence[float], tally: Tally) -> Finding | None:
    """Compare what a backend gives with what it should."""
    if isinstance(outputs, KuiperError) or isinstance(expected, KuiperError):
        said = f"{_described(outputs)}; expected {_described(expected)}"
        return None if type(outputs) is type(expected) else Finding("refusal", said)
    if len(outputs) != len(expected):
        return Finding("difference", f"{len(outputs)} outputs; expected {len(expected)}")
    for place, (output, wanted, most) in enumerate(zip(outputs, expected, allowed, strict=True)):
        problem = _array_difference(output, wanted, most, tally)
        if problem:
            return Finding("difference", f"output {place}, {wanted.shape}: {problem}")
    return None


def _array_difference(output: Array, wanted: Array, most: float, tally: Tally) -> str:
    """Return in words where an output is off by more than it may be; nothing where it is not."""
    if (output.shape, output.dtype) != (wanted.shape, wanted.dtype):
        return f"{output.shape} {output.dtype}; expected {wanted.dtype}"
    if output.dtype.kind != "f":
        return "" if np.array_equal(output, wanted) else f"other {output.dtype} values"
    odd = ~np.isfinite(wanted)
    if not np.array_equal(output[odd], wanted[odd], equal_nan=True):
        return "other infinities or NaN"
    with np.errstate(all="ignore"):
        off = np.where(odd, 0, np.abs(output.astype(np.float64) - wanted))
    off[np.isnan(off)] = np.inf
    worst = float(np.max(off, initial=0.0))
    if worst <= most:
        tally.largest = max(tally.largest, worst / most) if most else 0.0
        return ""
    at = tuple(int(place) for place in np.unravel_index(np.argmax(off), off.shape))
    count = int(np.count_nonzero(off > most))
    return f"{output[at]} at {at}; expected {wanted[at]}, off by at most {most:.3g}; {count} such elements"


def _unequal(outputs: Outcome, others: Outcome) -> Finding | None:
    """Compare results of one thread and of several: they are the same to the bit."""
    if isinstance(outputs, KuiperError) or isinstance(others, KuiperError):
        alike = type(outputs) is type(others)
        return None if alike else Finding("threads", f"{_described(others)}; alone {_described(outputs)}")
    for place, (output, other) in enumerate(zip(outputs, others, strict=True)):
        if not _same(output, other):
            return Finding("threads", f"output {place}: results depend on the number of threads")
    return None


def _same(a: Array, b: Array) -> bool:
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def _described(outcome: Outcome) -> str:
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, KuiperError) else "results"
