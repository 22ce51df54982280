"""Runs a case with the operands of its products rounded: to bfloat16, or to 8-bit integers.

Three things are asked of every program: that each operator gives what its reference layer makes of the same tensors,
rounded the same way; that its outputs are the same to the bit for any number of threads; and that they are finite where
those of float32 are, and near these.

How near follows from the case, as in `comparison`: by how much numpy's outputs change when weights and inputs are off
by as much as rounding moves them.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from engine import KuiperError, Quantization, RuntimeGraph
from engine.calibration.calibrator import Calibrator
from engine.calibration.examples import ArrayExamples
from engine.compiler.selection import Selector
from engine.compiler.selection.call import BF16
from engine.dtypes import Array
from engine.model.int8_binding import CONVOLUTIONS, LINEARS
from tests.differential.case import GraphCase, disturbed
from tests.differential.comparison import Finding, Mode, Outcome, Tally, compiling_for, forward
from tests.differential.layouts import LAYOUTS
from tests.differential.opening import open_graph

ROUNDED = ("bf16", "int8")
"""The precisions that round."""
THREADS = (1, 2, 3)
_PRODUCTS = frozenset(
    (
        *("nn.ConvTranspose1d", "nn.ConvTranspose2d", "torch.mm", "torch.bmm", "torch.matmul"),
        *("F.scaled_dot_product_attention", "nn.MultiheadAttention", "nn.TransformerEncoderLayer"),
        *("nn.LSTM", "nn.GRU", "nn.RNN", "torch.addmm", "torch.baddbmm", "torch.einsum"),
    )
)
"""Types besides those of int8 whose operands kernels may round."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """How far outputs in a precision may be from those in float32.

    Attributes:
        disturbances: shares of themselves by which weights and inputs are off, one after the other.
        growth: how many times the largest change of an output element that this makes is allowed.
        share: part of the output's largest element that is allowed besides.
    """

    disturbances: tuple[float, ...]
    growth: float
    share: float


_SATURATED = _Bound((), 0.0, np.inf)
_BOUNDS = {"bf16": _Bound((2.0**-8, 2.0**-9), 4.0, 0.05), "int8": _Bound((2.0**-5, 2.0**-6), 4.0, 0.25)}


@contextmanager
def always_rounding(rounds: bool = True) -> Iterator[None]:
    """Let bfloat16 be chosen wherever a kernel can, whatever this processor takes for it; or by the estimates."""
    if not rounds:
        yield
        return
    with patch.object(Selector, "rounds", lambda _, efforts: BF16 in efforts):
        yield


@dataclass(frozen=True, slots=True)
class _Graphs:
    """The graphs of a case.

    Attributes:
        plain: numpy's, in float32.
        disturbed: the same, weights off by each of the bound's disturbances.
        rounded: compiled ones, for each of `THREADS`.
    """

    plain: RuntimeGraph
    disturbed: Sequence[RuntimeGraph]
    rounded: Sequence[RuntimeGraph]


def can_round(case: GraphCase, precision: str) -> bool:
    """Whether a case has an operator that a precision may make another of."""
    types = {line.type for line in case.operators}
    integers = {*CONVOLUTIONS, *LINEARS}
    return bool(types & (integers if precision == "int8" else integers | _PRODUCTS))


def compare_rounded(
    case: GraphCase, mode: Mode, precision: str, tally: Tally | None = None, *, rounds: bool = True
) -> Finding | None:
    """Run a case in a precision; returns the first thing that is not as it should be.

    Args:
        case: the case.
        mode: what it is compiled for, and how inputs lie.
        precision: one of `ROUNDED`.
        tally: counts what was compared.
        rounds: whether all is rounded that can be, rather than what is expected to be faster.
    """
    tally = Tally() if tally is None else tally
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"), compiling_for(mode.target):
        try:
            graphs = _opened_all(case, precision, Path(folder))
        except KuiperError:
            tally.refused += 1
            return None
        with always_rounding(rounds):
            for run in range(len(case.runs)):
                finding = _compare_run(case, run, mode, precision, graphs, tally)
                if finding is not None:
                    return Finding(finding.kind, f"{precision}, {mode}: run {run}: {finding.text}")
    return None


def _opened_all(case: GraphCase, precision: str, folder: Path) -> _Graphs:
    """Return the graphs of a case; KuiperError where numpy does not run it, or it cannot be quantized."""
    param = case.write(folder)
    plain = open_graph(param, "numpy")
    quantization = quantize(plain, case, folder) if precision == "int8" else None
    shares = _BOUNDS[precision].disturbances
    return _Graphs(
        plain=plain,
        disturbed=[open_graph(case.write(folder, f"off{share}", share), "numpy") for share in shares],
        rounded=[
            open_graph(param, precision=precision, quantization=quantization, threads=count, verify="always")
            for count in THREADS
        ],
    )


def quantize(plain: RuntimeGraph, case: GraphCase, folder: Path) -> Quantization:
    """Return what the first run of a case says about the ranges of its tensors.

    Raises:
        InputError: the graph has no layer that can be computed in integers, or a tensor no finite number.
    """
    archive = folder / "examples.npz"
    examples: dict[str, Any] = {f"in_{place}": array[None] for place, array in enumerate(case.arrays(0))}
    np.savez(archive, **examples)
    calibrator = Calibrator(plain, ArrayExamples(archive, plain.inputs), [], lambda *_: None)
    calibrator.calibrate("minmax")
    return calibrator.quantization(calibrator.candidates)


def _compare_run(
    case: GraphCase, run: int, mode: Mode, precision: str, graphs: _Graphs, tally: Tally
) -> Finding | None:
    inputs = case.arrays(run)
    given = [LAYOUTS[mode.layout](array) for array in inputs]
    wanted = forward(graphs.plain, inputs)
    try:
        outcomes = [forward(graph, given) for graph in graphs.rounded]
    except Exception as error:  # whatever it is, it is what is looked for
        return Finding("exception", f"{type(error).__name__}: {error}")
    refused = [str(refusal) for graph in graphs.rounded for refusal in graph.verification.refused]
    if refused:
        return Finding("verification", refused[0])
    if any(type(outcome) is not type(wanted) for outcome in outcomes):
        return Finding("refusal", f"{outcomes[0]}; expected {wanted}")
    if isinstance(wanted, KuiperError):
        tally.refused += 1
        return None
    kind = f"{mode.target.name}, {precision}"
    tally.runs[kind] = tally.runs.get(kind, 0) + 1
    for threads, outcome in zip(THREADS, outcomes, strict=True):
        if not _are_same(outcome, outcomes[0]):
            return Finding("threads", f"{threads} threads give other bits than one")
    bound = _BOUNDS[precision]
    if precision == "int8" and run:
        bound = _SATURATED  # the first run alone says what ranges are
    changed = [
        forward(other, [disturbed(array, share) for array in inputs])
        for other, share in zip(graphs.disturbed, bound.disturbances, strict=False)
    ]
    return _far(outcomes[0], wanted, changed, bound, tally)


def _are_same(outcome: Outcome, other: Outcome) -> bool:
    if isinstance(outcome, KuiperError) or isinstance(other, KuiperError):
        return False
    pairs = zip(outcome, other, strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in pairs)


def _far(
    outcome: Outcome, wanted: list[Array], changed: Sequence[Outcome], bound: _Bound, tally: Tally
) -> Finding | None:
    """Return what is farther from float32 than rounding explains."""
    if isinstance(outcome, KuiperError):
        return None
    for place, (ours, exact) in enumerate(zip(outcome, wanted, strict=True)):
        where = f"output {place}, {exact.shape}"
        if (ours.shape, ours.dtype) != (exact.shape, exact.dtype):
            return Finding("difference", f"{where}: {ours.dtype}{ours.shape}; expected {exact.dtype}")
        if exact.dtype.kind != "f" or not exact.size:
            continue
        moved = [other[place] for other in changed if not isinstance(other, KuiperError)]
        steady = np.all([np.isfinite(array) for array in (exact, *moved)], axis=0)
        if not np.isfinite(ours[steady]).all():
            return Finding("overflow", f"{where}: not finite where float32 is")
        largest = float(np.max(np.abs(exact), where=steady, initial=0.0))
        grown = max((float(np.max(np.abs(a - exact), where=steady, initial=0.0)) for a in moved), default=0.0)
        allowed = bound.share * max(largest, 1e-30) + bound.growth * grown + 1e-30
        off = float(np.max(np.abs(ours - exact), where=steady, initial=0.0))
        if not off <= allowed:
            return Finding("difference", f"{where}: off by {off:.3g} of {largest:.3g}; at most {allowed:.3g}")
        tally.largest = max(tally.largest, off / allowed)
    return None
