import gc
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import (
    GraphState,
    InputError,
    LayerError,
    LayerRegistry,
    ParameterError,
    PnnxError,
    RunStoppedError,
    RuntimeGraph,
    StateError,
    TensorSpec,
    TraceLevel,
    UnsupportedOperatorError,
    registry,
)
from engine.dtypes import Array
from tests.engine.models import make_graph, write_model

CHAIN = """
    pnnx.Input in 0 1 a #a=(2,3)f32
    pnnx.Expression double 1 1 a b expr=mul(@0,2) #b=(2,3)f32
    pnnx.Expression unused 1 1 a z expr=neg(@0) #z=(2,3)f32
    pnnx.Expression plus 1 1 b c expr=add(@0,1) #c=(2,3)f32
    pnnx.Output out 1 0 c
"""
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def state_of(graph: RuntimeGraph) -> str:
    return graph.state.value


def test_states(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN, build=False)
    assert state_of(graph) == "NeedInit"
    with pytest.raises(StateError, match=r"NeedInit; call init\(\) or build\(\) first"):
        _ = graph.operators
    with pytest.raises(StateError, match=r"NeedInit; call build\(\) first"):
        graph.forward([X])
    graph.init()
    assert state_of(graph) == "NeedBuild"
    assert len(graph.operators) == 5
    with pytest.raises(StateError, match=r"NeedBuild; call build\(\) first"):
        graph.forward([X])
    graph.build()
    assert graph.state is GraphState.COMPLETE
    graph.build()
    graph.init()
    assert state_of(graph) == "Complete"
    np.testing.assert_array_equal(graph.forward([X])[0], X * 2 + 1)


def test_failed_build_leaves_the_state(tmp_path: Path) -> None:
    graph = RuntimeGraph(tmp_path / "missing.param")
    with pytest.raises(PnnxError):
        graph.build()
    assert state_of(graph) == "NeedInit"


def test_order_is_breadth_first_and_operators_off_the_path_do_not_block(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN, backend="numpy")
    assert [operator.name for operator in graph.execution_order] == ["in", "double", "unused", "plus", "out"]
    trace = graph.run([X], trace=TraceLevel.ON).trace
    assert trace is not None
    assert [layer.name for layer in trace.layers] == ["in", "double", "unused", "plus", "out"]


def test_all_unsupported_operators_are_listed_at_once(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a
        pnnx.Expresion one 1 1 a b expr=neg(@0)
        acme.Magic two 1 1 b c
        pnnx.Output out 1 0 c
    """
    with pytest.raises(UnsupportedOperatorError) as caught:
        make_graph(tmp_path, lines)
    assert [(o.name, o.type) for o in caught.value.operators] == [
        ("one", "pnnx.Expresion"),
        ("two", "acme.Magic"),
    ]
    assert caught.value.operators[0].nearest[0] == "pnnx.Expression"
    assert "2 unsupported operators: pnnx.Expresion one (nearest known: pnnx.Expression" in str(caught.value)


def test_what_is_left_of_onnx_is_called_so(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\nLoop loop_3 1 1 a b\npnnx.Output out 1 0 b"
    with pytest.raises(
        UnsupportedOperatorError, match=r"Loop loop_3 \(an ONNX operator that the exporter left unt"
    ):
        make_graph(tmp_path, lines)


def test_several_outputs_and_nested_tuples_come_flattened(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a
        pnnx.Expression one 1 1 a b expr=add(@0,1)
        pnnx.Expression two 1 1 a c expr=add(@0,2)
        prim::TupleConstruct inner 2 1 b c d
        prim::TupleConstruct outer 2 1 d a e
        pnnx.Output first 1 0 e
        pnnx.Output second 1 0 c
    """
    outputs = make_graph(tmp_path, lines).forward([X])
    for output, plus in zip(outputs, [1, 2, 0, 2], strict=True):
        np.testing.assert_array_equal(output, X + plus)


def test_graph_without_inputs(tmp_path: Path) -> None:
    lines = "pnnx.Attribute w 0 1 a @data=(2,3)f32 #a=(2,3)f32\npnnx.Output out 1 0 a"
    np.testing.assert_array_equal(make_graph(tmp_path, lines, {"w.data": X}).forward([])[0], X)


def test_float16_weights_compute_as_float32(tmp_path: Path) -> None:
    lines = "pnnx.Attribute w 0 1 a @data=(2,3)f16 #a=(2,3)f32\npnnx.Output out 1 0 a"
    output = make_graph(tmp_path, lines, {"w.data": X.astype(np.float16)}).forward([])[0]
    assert output.dtype == np.float32
    np.testing.assert_array_equal(output, X)


def counting_registry(log: list[str]) -> LayerRegistry:
    layers = LayerRegistry()
    for known in registry:
        if known.type.startswith("pnnx."):
            layers.layer(known.type, infer=known.infer)(known.forward)

    @layers.layer("test.Fresh")
    def fresh(input: Array) -> Array:
        log.append("fresh")
        return input + 1

    return layers


def test_intermediate_arrays_are_dropped_after_their_last_use(tmp_path: Path) -> None:
    layers = counting_registry([])
    seen: list[weakref.ref[Array]] = []
    alive: list[int] = []

    @layers.layer("test.Watch")
    def watch(input: Array) -> Array:
        gc.collect()
        alive.append(sum(ref() is not None for ref in seen))
        result = input + 1
        seen.append(weakref.ref(result))
        return result

    chain = "\n".join(f"test.Watch w{i} 1 1 v{i} v{i + 1}" for i in range(6))
    lines = f"pnnx.Input in 0 1 v0\n{chain}\npnnx.Output out 1 0 v6"
    graph = make_graph(tmp_path, lines, layers=layers)
    graph.forward([X])
    assert alive == [0, 1, 1, 1, 1, 1]


def test_stop_takes_effect_before_the_next_layer(tmp_path: Path) -> None:
    log: list[str] = []
    chain = "\n".join(f"test.Fresh f{i} 1 1 v{i} v{i + 1}" for i in range(4))
    graph = make_graph(
        tmp_path, f"pnnx.Input in 0 1 v0\n{chain}\npnnx.Output out 1 0 v4", layers=counting_registry(log)
    )
    with pytest.raises(RunStoppedError, match=r"stopped before test.Fresh f2: enough"):
        graph.run([X], stop=lambda: "enough" if len(log) == 2 else None)
    assert len(log) == 2


def test_capture_returns_intermediate_operands(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN)
    captured = graph.run([X], capture=["b", "z", "a", "c"]).captured
    for name, wanted in {"a": X, "b": X * 2, "z": -X, "c": X * 2 + 1}.items():
        np.testing.assert_array_equal(captured[name], wanted)
    with pytest.raises(InputError, match="no operand called 'q'"):
        graph.run([X], capture=["q"])
    with pytest.raises(InputError, match="capture: is the text 'ab'; expected a list of operand names"):
        graph.run([X], capture="ab")
    with pytest.raises(InputError, match="trace: is 'full'; expected one of off, on, statistics"):
        graph.run([X], trace="full")


def test_one_graph_serves_many_threads(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN)
    barrier = threading.Barrier(8)

    def call(seed: int) -> bool:
        barrier.wait()
        x = np.random.default_rng(seed).random((1 + seed % 3, 3), np.float32)
        return all(np.array_equal(graph.forward([x])[0], x * 2 + 1) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(8)))


def test_layer_faults_become_layer_errors(tmp_path: Path) -> None:
    layers = counting_registry([])

    @layers.layer("test.Broken")
    def broken(input: Array) -> Array:
        raise IndexError("index 9 is out of bounds")

    lines = "pnnx.Input in 0 1 a\ntest.Broken b 1 1 a c\npnnx.Output out 1 0 c"
    graph = make_graph(tmp_path, lines, layers=layers)
    with pytest.raises(
        LayerError, match=r"test.Broken b: cannot run on \(2,3\)f32: index 9 is out of bounds"
    ):
        graph.forward([X])


def test_wrong_and_missing_parameters_fail_at_build(tmp_path: Path) -> None:
    layers = counting_registry([])

    @layers.layer("test.Power")
    def power(input: Array, exponent: int, scale: float = 1.0) -> Array:
        return input**exponent * scale

    ends = "pnnx.Input in 0 1 a\n{}\npnnx.Output out 1 0 b"
    with pytest.raises(ParameterError, match="test.Power p: 'exponent' is missing; expected an int"):
        make_graph(tmp_path, ends.format("test.Power p 1 1 a b"), layers=layers)
    with pytest.raises(
        ParameterError, match="test.Power p, parameter 'exponent': got 'two'; expected an int"
    ):
        make_graph(tmp_path, ends.format("test.Power p 1 1 a b exponent=two"), layers=layers)
    with pytest.raises(ParameterError, match="test.Power p: 3 input operands; expected at most 2"):
        make_graph(tmp_path, ends.format("test.Power p 3 1 a a a b exponent=2"), layers=layers)
    graph = make_graph(tmp_path, ends.format("test.Power p 1 1 a b exponent=2 newer_key=9"), layers=layers)
    np.testing.assert_array_equal(graph.forward([X])[0], X**2)


def test_plan_is_kept_per_shape(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN)
    spec = TensorSpec((5, 3), np.dtype(np.float32))
    assert graph.plan([spec]) is graph.plan([spec])
    assert graph.plan([spec]).specs["c"] == spec
    with pytest.raises(InputError, match="got 0; expected 1"):
        graph.plan([])


def test_declared_plan_reads_dynamic_dimensions_as_one(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a #a=(?,3)f32\npnnx.Expression e 1 1 a b expr=neg(@0)\npnnx.Output out 1 0 b"
    plan = make_graph(tmp_path, lines).declared_plan()
    assert plan is not None
    assert plan.specs["b"] == TensorSpec((1, 3), np.dtype(np.float32))


def test_declared_plan_is_none_without_declared_shapes(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 a\npnnx.Output out 1 0 a"
    assert make_graph(tmp_path, lines).declared_plan() is None


def test_operators_and_operands_show_the_file(tmp_path: Path) -> None:
    graph = make_graph(tmp_path, CHAIN)
    double = graph.operators[1]
    assert (double.type, double.name, dict(double.params)) == (
        "pnnx.Expression",
        "double",
        {"expr": "mul(@0,2)"},
    )
    assert write_model(tmp_path, CHAIN).exists()
    operand = graph.operands["a"]
    assert operand.producer.name == "in"
    assert [consumer.name for consumer in operand.consumers] == ["double", "unused"]
    assert "double" in repr(double)
    assert "'a'" in repr(operand)


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((2,), "f4", r"operand 'a': shape \(2,\) has 1 dimensions; expected 2"),
        ((2, 3), "f8", "operand 'a': dtype is f64; expected f32"),
        ((-2, 3), "f4", r"operand 'a': shape \(-2, 3\) has a negative extent; expected a: \(2,3\)f32"),
    ],
)
def test_plan_takes_what_a_run_takes(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_graph(tmp_path, CHAIN).plan([TensorSpec(shape, np.dtype(dtype))])


def test_nearest_types_are_reported_of_the_first_unknown_ones(tmp_path: Path) -> None:
    chain = "\n".join(f"nn.MultiheadAttention{i:03} u{i} 1 1 v{i} v{i + 1}" for i in range(101))
    with pytest.raises(UnsupportedOperatorError) as caught:
        make_graph(tmp_path, f"pnnx.Input in 0 1 v0\n{chain}\npnnx.Output out 1 0 v101")
    assert len(caught.value.operators) == 101
    assert [bool(operator.nearest) for operator in caught.value.operators] == [True] * 100 + [False]


def test_graph_is_freed_with_its_last_user(tmp_path: Path) -> None:
    lines = """
    pnnx.Input  in     0 1 a #a=(1,3)f32
    nn.Linear   linear 1 1 a b bias=True in_features=3 out_features=2 @bias=(2)f32 @weight=(2,3)f32
    nn.ReLU     relu   1 1 b c
    pnnx.Output out    1 0 c
    """
    weights = {"linear.bias": np.ones(2, np.float32), "linear.weight": np.ones((2, 3), np.float32)}
    graph = make_graph(tmp_path, lines, weights)
    given = [np.ones((1, 3), np.float32)]
    gc.disable()
    try:
        result = graph.run(given, trace=TraceLevel.STATISTICS, capture=("b",))
        graph.declared_plan()
        weight = graph.operators[1].attrs["weight"].data.obj
        held: list[Callable[[], object]] = [weakref.ref(one) for one in (graph, weight, *graph.operators)]
        del weight
        operand = graph.operands["b"]
        assert len(held) == 6
        assert all(one() is not None for one in held)
        del graph
        assert [one() for one in held] == [None] * 6
    finally:
        gc.enable()
    assert result.outputs[0].tolist() == [[4, 4]]
    for access in ("producer", "consumers"):
        with pytest.raises(StateError, match="operand 'b': its graph is gone"):
            getattr(operand, access)
