"""Graphs that are run by numpy and by compiled kernels, for tests that compare both."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from tests.engine.models import make_graph

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
WEIGHTS = {"w.data": np.arange(4, dtype=np.float32), "fc.weight": np.eye(4, dtype=np.float32) * 2}
USES = {"w.data": "pnnx.Attribute w ", "fc.weight": "nn.Linear fc "}
INPUT = "pnnx.Input in 0 1 a #a=(2,3,4)f32"
LINEAR = "nn.Linear fc 1 1 a b bias=False in_features=4 out_features=4 @weight=(4,4)f32"


def open_both(folder: Path, lines: str, attributes: Mapping[str, Array] | None = None) -> list[RuntimeGraph]:
    """Return a graph run by numpy and by kernels, the latter once with helpers."""
    return [
        make_graph(folder, lines, attributes, backend=backend, threads=threads)
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 2))
    ]


def assert_same(output: Array, wanted: Array) -> None:
    """Assert that arrays are equal but for the last places, NaN where NaN is wanted."""
    assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)


def text(graph: str, head: str = INPUT) -> str:
    """Return the lines of a graph that are written with bars between them, behind its input's."""
    return "\n".join([head, *graph.split("|")])


def weights(lines: str) -> dict[str, Array]:
    """Return the attributes of those of `USES` that are in the lines."""
    return {name: array for name, array in WEIGHTS.items() if USES[name] in lines}


def left_to_numpy(graph: RuntimeGraph, inputs: Sequence[Array]) -> set[str]:
    """Return the types of the layers that numpy runs: a comparison with numpy proves nothing of them."""
    trace = graph.run(inputs, trace=TraceLevel.ON).trace
    assert trace is not None
    places = {"pnnx.Input", "pnnx.Output"}
    return {layer.type for layer in trace.layers if layer.backend == "numpy" and layer.type not in places}
