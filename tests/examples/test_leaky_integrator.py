from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel, layer
from engine.dtypes import Array
from tests.engine.models import make_graph
from tests.examples.conftest import Extend, serving
from tests.service.models import add_model


def lines(shape: tuple[int, ...], after: str = "nn.ReLU relu 1 1 1 2") -> str:
    extents = ",".join(map(str, shape))
    return f"""
        pnnx.Input              in    0 1 0 #0=({extents})f32
        signal.LeakyIntegrator  leaky 1 1 0 1 decay=0.5 #0=({extents})f32
        {after}
        pnnx.Output             out   1 0 2"""


def backends(graph: RuntimeGraph, x: Array) -> dict[str, str]:
    trace = graph.run(x, trace=TraceLevel.ON).trace
    assert trace is not None
    return {step.name: step.backend for step in trace.layers}


@pytest.mark.parametrize("shape", [(7,), (2, 5, 100), (3, 1, 9), (64, 1000)])
@pytest.mark.parametrize("threads", [1, 2])
def test_kernel_computes_what_the_layer_does(
    tmp_path: Path, extend: Extend, shape: tuple[int, ...], threads: int
) -> None:
    example = extend("leaky_integrator")
    graph = make_graph(tmp_path, lines(shape), backend="native", threads=threads)
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    assert backends(graph, x)["leaky"] == "native"
    expected = np.maximum(example.leaky_integrator(x, 0.5), 0)
    np.testing.assert_allclose(graph(x)[0], expected, rtol=1e-5, atol=1e-6)
    assert graph.verification.checked == 1


def test_kernel_reads_and_writes_tensors_that_lie_otherwise(tmp_path: Path, extend: Extend) -> None:
    example = extend("leaky_integrator")
    before = """
        pnnx.Input             in    0 1 0 #0=(4,6)f32
        torch.transpose        turn  1 1 0 1 dim0=0 dim1=1 #1=(6,4)f32
        signal.LeakyIntegrator leaky 1 1 1 2 decay=0.5 #2=(6,4)f32
        torch.cat              both  2 1 1 2 3 dim=1 #3=(6,8)f32
        pnnx.Output            out   1 0 3"""
    graph = make_graph(tmp_path, before, backend="native")
    x = np.random.default_rng(2).standard_normal((4, 6), np.float32)
    assert backends(graph, x)["leaky"] == "native"
    expected = np.concatenate([x.T, example.leaky_integrator(x.T, 0.5)], axis=1)
    np.testing.assert_allclose(graph(x)[0], expected, rtol=1e-5, atol=1e-6)


def test_kernel_is_not_for_a_layer_that_takes_the_place(tmp_path: Path, extend: Extend) -> None:
    example = extend("leaky_integrator")

    @layer("signal.LeakyIntegrator", infer=example.infer_leaky_integrator, replace=True)
    def nothing(input: Array, decay: float) -> Array:
        return input * np.float32(decay)

    graph = make_graph(tmp_path, lines((2, 3)), backend="native")
    x = np.ones((2, 3), np.float32)
    assert backends(graph, x)["leaky"] == "numpy"
    np.testing.assert_array_equal(graph(x)[0], x / 2)


@pytest.mark.anyio
async def test_kernel_serves(tmp_path: Path, extend: Extend) -> None:
    extend("leaky_integrator")
    add_model(tmp_path, "leaky", lines((1, 3)))
    async with serving(tmp_path) as client:
        response = (await client.post("/infer", json={"inputs": [{"data": [[1, 2, -3]]}]})).json()
    assert response["outputs"][0]["data"] == [[1, 2.5, 0]]
    assert response["trace"]["layers"][1]["backend"] == "native"
