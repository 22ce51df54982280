from pathlib import Path

import numpy as np
import pytest

from engine import LayerError, LayerRegistry, RuntimeGraph, TensorSpec, TraceLevel, registry
from engine.dtypes import Array
from engine.errors import ArgumentError
from tests.engine.models import make_graph, write_model

F32 = np.dtype(np.float32)
DOUBLING = "\n".join(
    [
        "pnnx.Input in 0 1 v0",
        *(f"torch.cat c{i} 2 1 v{i} v{i} v{i + 1} dim=0" for i in range(40)),
        "pnnx.Output out 1 0 v40",
    ]
)
X = np.zeros((2, 3), np.float32)


def test_run_that_would_take_too_much_is_refused_before_it_starts(tmp_path: Path) -> None:
    message = "torch.cat c26: the tensors alive while it runs would take 4,831,838,208 bytes; expected at most 4,294,"
    with pytest.raises(LayerError, match=message):
        make_graph(tmp_path, DOUBLING).forward([X])


def test_limit_is_the_graphs_own(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\npnnx.Expression e 1 1 a b expr=neg(@0)\npnnx.Output out 1 0 b"
    graph = RuntimeGraph(write_model(tmp_path, lines), max_run_bytes=48)
    graph.build()
    assert graph.forward([X])[0].shape == (2, 3)
    with pytest.raises(
        LayerError, match=r"pnnx.Expression e: .* would take 72 bytes; expected at most 48 for"
    ):
        graph.forward([np.zeros((3, 3), np.float32)])


def test_huge_view_is_refused_as_an_input(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, "pnnx.Input in 0 1 a\npnnx.Output out 1 0 a")
    with pytest.raises(LayerError, match="pnnx.Input in: .* would take 4,000,000,000,000 bytes"):
        graph.forward([np.broadcast_to(np.float32(0), (10**6, 10**6))])


def test_peak_counts_what_is_alive_and_is_unknown_with_its_shapes(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a
        pnnx.Expression one 1 1 a b expr=neg(@0)
        pnnx.Expression two 1 1 a c expr=neg(@0)
        pnnx.Expression sum 2 1 b c d expr=add(@0,@1)
        pnnx.Output out 1 0 d
    """
    plan = make_graph(tmp_path, lines).plan([TensorSpec((2, 3), F32)])
    assert list(plan.held_bytes()) == [24, 48, 72, 72, 24]
    assert plan.peak_bytes == 72
    graph = make_graph(tmp_path, CROP, layers=with_crop())
    assert graph.plan([TensorSpec((2, 3), F32)]).peak_bytes is None


CROP = """
    pnnx.Input in 0 1 a
    test.Crop crop 1 1 a b
    test.Grow grow 1 1 b c
    pnnx.Output out 1 0 c
"""


def with_crop(limit: int = 4) -> LayerRegistry:
    """Return layers whose shapes depend on data: one drops zeros, one makes 2**20 of every element."""
    layers = LayerRegistry()
    for known in registry:
        if known.type.startswith("pnnx."):
            layers.layer(known.type, infer=known.infer)(known.forward)

    @layers.layer("test.Crop")
    def crop(input: Array) -> Array:
        kept: Array = input[input != 0]
        return kept

    def infer_grow(input: TensorSpec) -> TensorSpec:
        if input.size > limit:
            raise ArgumentError("input", f"{input.size} elements", f"at most {limit}")
        return input.with_shape((input.size * 2**20,))

    @layers.layer("test.Grow", infer=infer_grow)
    def grow(input: Array) -> Array:
        return np.repeat(input, 2**20)

    return layers


def test_shapes_that_depend_on_data_are_checked_during_the_run(tmp_path: Path) -> None:
    graph = RuntimeGraph(write_model(tmp_path, CROP), layers=with_crop(), max_run_bytes=2**22)
    graph.build()
    result = graph.run([np.array([0, 3, 0], np.float32)], trace=TraceLevel.ON)
    assert result.outputs[0].shape == (2**20,)
    with pytest.raises(
        LayerError, match=r"test.Grow grow: .* would take 8,388,608 bytes; expected at most 4,"
    ):
        graph.forward([np.ones(2, np.float32)])
    with pytest.raises(LayerError, match=r"test.Grow grow, operand 'b' .*: 5 elements; expected at most 4"):
        graph.forward([np.ones(5, np.float32)])


def test_numbers_that_overflow_are_no_warnings(tmp_path: Path) -> None:
    lines = "pnnx.Expression e 0 1 a expr=pow(1e300,1e300)\npnnx.Output out 1 0 a"
    assert make_graph(tmp_path, lines).forward([])[0] == np.inf
