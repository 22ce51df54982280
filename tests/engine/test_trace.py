from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from engine.errors import InputError
from engine.trace import check_level, measure, shares, trace_operand
from tests.engine.models import make_graph

LINES = """
    pnnx.Input in 0 1 a #a=(2,3)f32
    pnnx.Attribute w 0 1 k @data=(3)f32 #k=(3)f32
    pnnx.Expression mix 2 1 a k b expr=div(@0,@1) #b=(2,3)f32
    prim::TupleConstruct pair 2 1 a b c
    pnnx.Output out 1 0 c
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def graph(tmp_path: Path) -> RuntimeGraph:
    return make_graph(tmp_path, LINES, {"w.data": np.array([0, 1, 2], np.float32)})


def test_trace_off_records_nothing(graph: RuntimeGraph) -> None:
    assert graph.run([X]).trace is None


def test_trace_tells_every_operator(graph: RuntimeGraph) -> None:
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert [(t.index, t.name, t.type) for t in trace.layers] == [
        (0, "in", "pnnx.Input"),
        (1, "w", "pnnx.Attribute"),
        (2, "mix", "pnnx.Expression"),
        (3, "pair", "prim::TupleConstruct"),
        (4, "out", "pnnx.Output"),
    ]
    mix = trace.layers[2]
    assert [(o.name, o.shape, o.dtype) for o in mix.inputs] == [("a", (2, 3), "f32"), ("k", (3,), "f32")]
    assert [(o.name, o.shape, o.dtype, o.statistics) for o in mix.outputs] == [("b", (2, 3), "f32", None)]
    assert mix.bytes_moved == 24 + 12 + 24
    assert trace.layers[3].outputs[0].dtype == "tuple"
    assert sum(layer.share for layer in trace.layers) == pytest.approx(1)
    starts = [layer.start_us for layer in trace.layers]
    assert starts == sorted(starts)
    assert all(layer.duration_us >= 0 for layer in trace.layers)
    assert trace.layers[-1].start_us + trace.layers[-1].duration_us == pytest.approx(trace.total_us)


def test_trace_tells_when_the_run_began(graph: RuntimeGraph) -> None:
    before = perf_counter_ns()
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert before <= trace.start_ns <= perf_counter_ns() - trace.total_us * 1000


def test_statistics_are_of_outputs(graph: RuntimeGraph) -> None:
    trace = graph.run([X], trace=TraceLevel.STATISTICS).trace
    assert trace is not None
    statistics = trace.layers[2].outputs[0].statistics
    assert statistics is not None
    # 0/0 1/1 2/2 3/0 4/1 5/2
    assert (statistics.nan, statistics.inf) == (1, 1)
    finite = np.array([1, 1, 4, 2.5])
    assert (statistics.minimum, statistics.maximum) == (1, 4)
    assert statistics.mean == pytest.approx(finite.mean())
    assert statistics.std == pytest.approx(finite.std())
    assert trace.layers[2].inputs[0].statistics is None


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([1, 5], np.int64), (1, 5, 3, 2, 0, 0)),
        (np.array([True, False]), (0, 1, 0.5, 0.5, 0, 0)),
        (np.array([3 + 4j, 0]), (0, 5, 2.5, 2.5, 0, 0)),
        (np.array([np.nan, np.inf, -np.inf], np.float32), (None, None, None, None, 1, 2)),
        (np.zeros((0, 3), np.float32), (None, None, None, None, 0, 0)),
        (np.array(2.0, np.float16), (2, 2, 2, 0, 0, 0)),
    ],
)
def test_measure(array: Array, wanted: tuple[float | None, ...]) -> None:
    s = measure(array)
    assert (s.minimum, s.maximum, s.mean, s.std, s.nan, s.inf) == wanted


def test_scalars_are_traced_by_type() -> None:
    traced = trace_operand("n", 3)
    assert (traced.name, traced.shape, traced.dtype) == ("n", None, "int")


def test_shares_of_nothing_are_zero() -> None:
    assert shares([0.0, 0.0]) == [0.0, 0.0]


@pytest.mark.parametrize("level", ["on", True, 7, 1, None])
def test_level_that_is_none(level: object) -> None:
    with pytest.raises(InputError, match=r"trace: is .*; expected one of TraceLevel.OFF, TraceLevel.ON, Tr"):
        check_level(level)
    assert check_level(TraceLevel.ON) is TraceLevel.ON
