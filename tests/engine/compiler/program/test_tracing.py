"""The trace of a compiled run reports every operator once, whoever did its work."""

from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest

from engine import LayerTrace, RunTrace, TraceLevel
from tests.engine.compiler.plans import IMAGE, conv, weights_of
from tests.engine.models import make_graph
from tests.golden.network_data import NAMES, arrays, open_network

LINES = (
    IMAGE,
    "pnnx.Attribute w 0 1 k @data=(4,1,1)f32",
    conv("first", "x", "a"),
    "F.relu act 1 1 a b $input=a",
    "Tensor.permute turn 1 1 b t dims=(0,2,3,1) $input=b",
    conv("second", "x", "c"),
    "pnnx.Expression add 3 1 c b k d expr=add(add(@0,@1),@2)",
    "Tensor.size size 1 1 x n dim=0 $input=x",
    "torch.cumprod sum 1 1 d e dim=1 $input=d",
    "pnnx.Expression over 1 1 e m expr=gt(@0,1)",
    "torch.masked_select pick 2 1 e m f $input=e $mask=m",
    "pnnx.Output out 3 0 e f t",
)


@pytest.fixture
def trace(tmp_path: Path) -> RunTrace:
    text = "\n".join(LINES)
    graph = make_graph(tmp_path, text, weights_of(text), backend="native")
    image = np.ones((2, 3, 5, 6), np.float32)
    trace = graph.run([image], trace=TraceLevel.ON).trace
    assert trace is not None
    return trace


def named(trace: RunTrace) -> dict[str, LayerTrace]:
    return {layer.name: layer for layer in trace.layers}


def test_every_operator_is_there_once(trace: RunTrace) -> None:
    names = [line.split()[1] for line in LINES]
    assert sorted(layer.name for layer in trace.layers) == sorted(names)
    assert [layer.index for layer in trace.layers] == list(range(len(names)))


def test_backends(trace: RunTrace) -> None:
    backends = {name: layer.backend for name, layer in named(trace).items()}
    native = dict.fromkeys(["first", "act", "turn", "second", "add", "over", "out"], "native")
    numpy = dict.fromkeys(["in", "sum", "pick"], "numpy")
    assert backends == native | numpy | dict.fromkeys(["w", "size"], "folded")


def test_fused_operators_are_named_both_ways(trace: RunTrace) -> None:
    layers = named(trace)
    assert layers["first"].fused == ("act",)
    assert layers["second"].fused == ("add",)
    assert {name: layer.fused_into for name, layer in layers.items() if layer.fused_into} == {
        "act": "first",
        "add": "second",
    }
    assert layers["act"].duration_us == 0
    assert layers["first"].duration_us > 0


def test_layers_come_in_the_order_in_which_they_ran(trace: RunTrace) -> None:
    starts = [layer.start_us for layer in trace.layers]
    assert starts == sorted(starts)
    order = [layer.name for layer in trace.layers]
    assert order[0] == "in"
    assert order[-1] == "out"
    assert order.index("act") == order.index("first") + 1


def test_times_add_up_to_the_run(trace: RunTrace) -> None:
    assert sum(layer.share for layer in trace.layers) == pytest.approx(1)
    assert sum(layer.duration_us for layer in trace.layers) <= trace.total_us
    ends = [layer.start_us + layer.duration_us for layer in trace.layers]
    assert max(ends) == pytest.approx(trace.total_us)
    for layer, following in zip(trace.layers, trace.layers[1:], strict=False):
        assert layer.start_us + layer.duration_us <= following.start_us + 1e-6
    assert trace.start_ns <= perf_counter_ns() - trace.total_us * 1000


def test_operands_are_those_of_the_model(trace: RunTrace) -> None:
    layers = named(trace)
    assert [(o.name, o.shape, o.dtype) for o in layers["turn"].outputs] == [("t", (2, 5, 6, 4), "f32")]
    assert [operand.name for operand in layers["add"].inputs] == ["c", "b", "k"]
    assert [(o.shape, o.dtype) for o in layers["size"].outputs] == [(None, "int")]
    (picked,) = layers["pick"].outputs
    assert picked.shape is not None
    assert layers["pick"].bytes_moved == 5 * 2 * 4 * 5 * 6 + 4 * picked.shape[0]
    assert layers["first"].multiply_adds == 2 * 4 * 5 * 6 * 27


@pytest.mark.parametrize("name", NAMES)
def test_networks(name: str) -> None:
    graph = open_network(name, "native")
    trace = graph.run(arrays(name, "file", "in"), trace=TraceLevel.ON).trace
    assert trace is not None
    layers = named(trace)
    assert sorted(layers) == sorted(operator.name for operator in graph.operators)
    for layer in trace.layers:
        assert all(layers[other].fused_into == layer.name for other in layer.fused)
        assert layer.fused_into is None or layer.name in layers[layer.fused_into].fused
    assert sum(layer.multiply_adds for layer in trace.layers) > 0


def test_trace_is_made_when_it_is_looked_at(tmp_path: Path) -> None:
    """A traced run costs its timestamps; what they mean is worked out for who asks, and once."""
    text = "pnnx.Input in 0 1 a #a=(1,3)f32\nnn.ReLU act 1 1 a b #b=(1,3)f32\npnnx.Output out 1 0 b"
    graph = make_graph(tmp_path, text, {}, backend="native")
    first = graph.run([np.ones((1, 3), np.float32)], trace=TraceLevel.ON).trace
    second = graph.run([np.ones((1, 3), np.float32)], trace=TraceLevel.ON).trace
    assert first is not None
    assert second is not None
    assert first.layers is first.layers
    assert [layer.name for layer in first.layers] == ["in", "act", "out"]
    assert second.start_ns > first.start_ns
    assert first.total_us >= max(layer.start_us + layer.duration_us for layer in first.layers) - 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_operands_are_described_as_without_a_compiler(name: str) -> None:
    """Those too that lie in the arena, or that no run makes, beside operands that only the run can show."""
    inputs = arrays(name, "file", "in")
    described = []
    for backend in ("native", "numpy"):
        trace = open_network(name, backend).run(inputs, trace=TraceLevel.ON).trace
        assert trace is not None
        described.append({layer.name: (layer.inputs, layer.outputs) for layer in trace.layers})
    assert described[0] == described[1]
