"""Compiled graphs give what the layers' numpy forward gives, whatever they are made of."""

from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings

from engine import RuntimeGraph
from engine.trace import TraceLevel
from tests.engine.compiler.random_graphs import RandomGraph, graphs
from tests.engine.models import write_model


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graphs())
def test_compiled_graph_gives_what_numpy_gives(tmp_path: Path, drawn: tuple[RandomGraph, list[str]]) -> None:
    graph, leaving = drawn
    lines = [*graph.lines, *(f"pnnx.Output out{place} 1 0 {name}" for place, name in enumerate(leaving))]
    param = write_model(tmp_path, "\n".join(lines), graph.attributes)
    plain, native, shared = (
        RuntimeGraph(param, backend=backend, threads=threads)
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 2))
    )
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in graph.inputs]
    kept = [array.copy() for array in inputs]
    for each in (plain, native, shared):
        each.build()
    wanted = plain.forward(inputs)
    result = native.run(inputs, trace=TraceLevel.ON)
    for output, other, expected in zip(result.outputs, shared.forward(inputs), wanted, strict=True):
        assert (output.shape, output.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4 * max(1.0, np.abs(expected).max()))
        np.testing.assert_array_equal(output, other, "the number of threads changes results")
    for before, after in zip(kept, inputs, strict=True):
        np.testing.assert_array_equal(before, after, "a kernel wrote to an input")
    assert result.trace is not None
    names = [layer.name for layer in result.trace.layers]
    assert sorted(names) == sorted(operator.name for operator in native.operators)
