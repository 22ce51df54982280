"""Graphs of PyTorch's quantized operators on kernels of integers; what PyTorch computed is in the golden data."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import Precision, RuntimeGraph, TraceLevel
from engine.dtypes import Array
from engine.run.trace import LayerTrace
from tests.engine.models import make_graph
from tests.golden.data import load

CASE = "nn.quantized.Conv2d-residual"
QUANTIZE = "nn.quantized.Quantize quantize 1 1 x q scale=5.0e-01 zero_point=11 dtype=torch.quint8"
REAL: Array = np.array([[-5, 0.25, 5], [10.75, 15, 122.5]], np.float32)


def opened(folder: Path, case: str = CASE, runs: int = 3, threads: int = 1) -> RuntimeGraph:
    golden = load("quantized", case, runs)
    (folder / "case.param").write_bytes(golden.param)
    (folder / "case.bin").write_bytes(golden.bin)
    graph = RuntimeGraph(folder / "case.param", backend="native", threads=threads, verify="always")
    graph.build()
    return graph


def around(folder: Path, lines: str, backend: str) -> RuntimeGraph:
    text = f"pnnx.Input input 0 1 x\n{QUANTIZE}\n{lines}\npnnx.Output output 1 0 r"
    return make_graph(folder, text, backend=backend)


def traced(graph: RuntimeGraph, inputs: Sequence[Array]) -> Sequence[LayerTrace]:
    trace = graph.run(list(inputs), trace=TraceLevel.ON).trace
    assert trace is not None
    return trace.layers


def test_every_operator_runs_on_kernels_and_products_are_of_integers(tmp_path: Path) -> None:
    graph = opened(tmp_path)
    (inputs, _), *_ = load("quantized", CASE, 3).runs
    layers = traced(graph, inputs)
    assert {layer.backend for layer in layers if layer.inputs} == {"native"}
    of_integers = {layer.name for layer in layers if layer.precision == "int8"}
    assert of_integers == {"first", "depthwise", "grouped", "last"}
    assert graph.verification.checked == 1
    assert not graph.verification.refused
    assert graph.precision is Precision.F32


def test_no_scale_is_left_of_a_network_that_hands_integers_on(tmp_path: Path) -> None:
    """What is captured is what the integers of the golden data's layers stand for."""
    (inputs, _), *_ = load("quantized", CASE, 3).runs
    captured = opened(tmp_path).run(inputs, capture=["a", "b"]).captured
    for name, scale in (("a", 0.06), ("b", 0.031)):
        steps = np.asarray(captured[name]) / scale
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4)
        assert np.unique(steps.round()).size > 20


def test_bits_are_the_same_for_any_number_of_threads(tmp_path: Path) -> None:
    inputs = load("quantized", CASE, 3).runs[2][0]
    results = [opened(tmp_path, threads=threads).forward(inputs)[0].tobytes() for threads in (1, 2, 3)]
    assert len(set(results)) == 1


def test_rounding_is_that_of_pytorch_where_the_zero_point_is_odd(tmp_path: Path) -> None:
    graph = around(tmp_path, "torch.dequantize back 1 1 q r", "native")
    # torch.quantize_per_tensor(x, 0.5, 11, torch.quint8).dequantize()
    np.testing.assert_array_equal(graph.forward([REAL])[0], [[-5, 0.5, 5], [10.5, 15, 122]])


def test_tensors_of_other_scales_are_joined_with_the_rounding_of_pytorch(tmp_path: Path) -> None:
    """A layer that gives 0, and REAL in other steps, joined by torch.cat of PyTorch, and dequantized."""
    weight = "@weight=(1,3)i8 @weight.q_per_channel_scales=(1)f64"
    lines = f"""pnnx.Input input 0 1 x
        {QUANTIZE}
        nn.quantized.Linear zero 1 1 q z bias=False scale=5.0e-01 zero_point=11 {weight}
        nn.quantized.Quantize other 1 1 x p scale=2.5e-01 zero_point=5 dtype=torch.quint8
        torch.cat both 2 1 z p c dim=1
        torch.dequantize back 1 1 c r
        pnnx.Output output 1 0 r"""
    attributes: dict[str, Array] = {
        "zero.weight": np.zeros((1, 3), np.int8),
        "zero.weight.q_per_channel_scales": np.ones(1),
    }
    for backend in ("native", "numpy"):
        result = make_graph(tmp_path, lines, attributes, backend=backend).forward([REAL])[0]
        np.testing.assert_array_equal(result, [[0, -1.5, 0.5, 5], [0, 10.5, 15, 62.5]])


@pytest.mark.parametrize(
    "apart", ["torch.split apart 1 1 q l split_size_or_sections=2", "torch.unbind apart 1 1 q l"]
)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_list_of_parts_is_joined_as_pytorch_does(tmp_path: Path, apart: str, backend: str) -> None:
    """As a scripted model has it: the list has no type in the file."""
    lines = f"{apart} dim=0 #q=(2,3)u8\nnn.quantized.cat join 1 1 l c dim=0 scale=2.5e-01 zero_point=5"
    graph = around(tmp_path, f"{lines}\ntorch.dequantize back 1 1 c r", backend)
    # torch.ops.quantized.cat(list(q.split(2)), 0, 0.25, 5).dequantize(), and of q.unbind()
    rows = np.array([[-1.25, 0.5, 5], [10.5, 15, 62.5]])
    np.testing.assert_array_equal(graph.forward([REAL])[0], rows if "split" in apart else rows.reshape(-1))


@pytest.mark.parametrize(
    "lines",
    [
        # the scale is known in a run only; 32 bits; a type that kernels know nothing of in between
        "pnnx.Expression e 1 1 x v expr=mul(size(@0,1),0.25)\n"
        "torch.quantize_per_tensor o 2 1 x v p zero_point=3 dtype=torch.quint8 $input=x $scale=v\n"
        "torch.dequantize back 1 1 p r",
        "torch.quantize_per_tensor o 1 1 x p scale=1.0 zero_point=0 dtype=torch.qint32\n"
        "torch.dequantize back 1 1 p r",
        "torch.argmax o 1 1 q r dim=1 keepdim=False",
    ],
)
def test_other_graphs_stay_with_the_layers_of_quantized_tensors(tmp_path: Path, lines: str) -> None:
    native, numpy = (around(tmp_path, lines, backend) for backend in ("native", "numpy"))
    np.testing.assert_array_equal(native.forward([REAL])[0], numpy.forward([REAL])[0])
    assert "u8" in {operand.dtype for layer in traced(native, [REAL]) for operand in layer.outputs}
