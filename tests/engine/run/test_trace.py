import tracemalloc
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from engine.errors import InputError
from engine.run.trace import choose_level, join_statistics, measure, shares, trace_operand
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


def test_trace_shows_every_operator(graph: RuntimeGraph) -> None:
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


def test_trace_shows_when_the_run_began(graph: RuntimeGraph) -> None:
    before = perf_counter_ns()
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert before <= trace.start_ns <= perf_counter_ns() - trace.total_us * 1000


def test_statistics_are_of_outputs(graph: RuntimeGraph) -> None:
    trace = graph.run([X], trace="statistics").trace
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


@pytest.mark.parametrize("level", ["ON", "", True, 7, 1, None, ["on"]])
def test_level_that_is_none(level: Any) -> None:
    with pytest.raises(
        InputError, match=r"trace: is .*; expected one of off, on, statistics, or a TraceLevel"
    ):
        choose_level(level)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("off", TraceLevel.OFF),
        ("on", TraceLevel.ON),
        ("statistics", TraceLevel.STATISTICS),
        ("stats", TraceLevel.STATISTICS),
    ],
)
def test_level_by_name(name: str, level: TraceLevel) -> None:
    assert choose_level(name) is level


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.complex64])
def test_measure_of_many_blocks(dtype: type[np.generic], order: str) -> None:
    random = np.random.default_rng(0)
    array = np.asarray(random.normal(3, 50, (70, 3000)), order=order).astype(dtype)  # type: ignore[call-overload]
    s = measure(array[::2])
    numbers = np.abs(array[::2]) if dtype is np.complex64 else array[::2].astype(np.float64)
    assert (s.minimum, s.maximum, s.count) == (numbers.min(), numbers.max(), numbers.size)
    assert s.mean == pytest.approx(numbers.mean(dtype=np.float64), rel=1e-9)
    assert s.std == pytest.approx(numbers.std(dtype=np.float64), rel=1e-9)


def test_measure_takes_little_memory_beside_the_array() -> None:
    array = np.zeros(10_000_000, np.float32)
    array[::1000] = np.nan
    tracemalloc.start()
    s = measure(array)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (s.nan, s.count, s.mean) == (10_000, 9_990_000, 0.0)
    assert peak < array.nbytes / 10


def test_parts_without_a_finite_element_count_no_more_than_what_is_not_finite() -> None:
    nothing, some = measure(np.array([np.nan, np.inf])), measure(np.array([1.0, 3.0, np.inf]))
    joined = join_statistics([nothing, some, nothing])
    assert (joined.nan, joined.inf, joined.count) == (2, 3, 2)
    assert (joined.minimum, joined.maximum, joined.mean, joined.std) == (1, 3, 2, 1)
    assert join_statistics([nothing, nothing]).mean is None
