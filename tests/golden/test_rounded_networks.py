"""Whole networks in bfloat16 and int8 against PyTorch, on ordinary and on extreme inputs."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from tests.golden.network_data import DATA, NAMES, arrays, open_network
from tests.golden.rounded_networks import (
    INPUTS,
    NOT_FINITE,
    ORDINARY,
    allowed,
    calibrated,
    distance,
    sampled,
)

PRECISIONS = ("bf16", "int8")
THREADS = (1, 2, 3)
MADE = [name for name in NAMES if (DATA / name / "rounded.npz").exists()]


@cache
def opened(name: str, precision: str, threads: int = 1) -> RuntimeGraph:
    quantization = None
    if precision == "int8":
        quantization = calibrated(open_network(name), arrays(name, "file", "in"))
    graph = RuntimeGraph(
        DATA / name / f"{name}.pnnx.param",
        precision=precision,
        quantization=quantization,
        threads=threads,
        backend="native",
        verify="always",
    )
    graph.build()
    return graph


def wanted(name: str, kind: str, precision: str) -> tuple[list[Array], float]:
    """Return PyTorch's outputs in float32, and how far from them it is in a precision."""
    with np.load(DATA / name / "rounded.npz") as archive:
        keys = sorted(key for key in archive.files if key.startswith(f"{kind}/out_"))
        return [archive[key] for key in keys], float(archive[f"{kind}/{precision}"])


def given(name: str, kind: str) -> list[Array]:
    return [INPUTS[kind](array) for array in arrays(name, "file", "in")]


def rounded_layers(graph: RuntimeGraph, inputs: Sequence[Array], precision: str) -> int:
    trace = graph.run(inputs, trace=TraceLevel.ON).trace
    assert trace is not None
    return sum(layer.precision == precision and layer.multiply_adds > 0 for layer in trace.layers)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MADE)
def test_errors_are_those_of_rounding(name: str, precision: str) -> None:
    graph = opened(name, precision)
    layers = rounded_layers(graph, given(name, "drawn"), precision)
    for kind in ORDINARY if precision == "bf16" else ORDINARY[:1]:  # ranges are those of the first
        exact, of_pytorch = wanted(name, kind, precision)
        outputs = [sampled(output) for output in graph.forward(given(name, kind))]
        off, most = distance(outputs, exact), allowed(precision, layers, of_pytorch)
        assert off <= most, f"{kind}: off by {off:.2g}; at most {most:.2g}"
    assert not graph.verification.refused


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MADE)
def test_results_are_finite_where_those_of_pytorch_are(name: str, precision: str) -> None:
    for kind in INPUTS:
        exact, _ = wanted(name, kind, precision)
        for output, of_torch in zip(opened(name, precision).forward(given(name, kind)), exact, strict=True):
            finite = np.isfinite(sampled(output))
            if kind not in NOT_FINITE:
                assert finite[np.isfinite(of_torch)].all(), kind
            elif precision == "bf16":  # integers cannot say so
                assert not finite[~np.isfinite(of_torch)].any(), kind


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MADE)
def test_threads_do_not_change_a_bit_of_rounded_results(name: str, precision: str) -> None:
    for kind in ("drawn", "huge", "nan"):
        inputs = given(name, kind)
        alone = opened(name, precision).forward(inputs)
        for threads in THREADS[1:]:
            for output, other in zip(opened(name, precision, threads).forward(inputs), alone, strict=True):
                assert output.tobytes() == other.tobytes(), f"{kind}, {threads} threads"
