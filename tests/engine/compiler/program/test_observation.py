"""What is seen of a compiled run is what the program that serves computes, tensor by tensor."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph
from engine.compiler.emit.target import host_target
from engine.compiler.program.observation import Observation, observe
from engine.dtypes import Array
from engine.errors import RunStoppedError
from engine.run.trace import RunTrace, TraceLevel
from engine.spec import TensorSpec, Value
from tests.engine.compiler.plans import batch_norm, compiled, conv, weights_of
from tests.engine.models import make_graph
from tests.golden.network_data import NAMES, arrays, open_network

LINES = (
    "pnnx.Input in 0 1 x #x=(2,3,5,6)f32",
    conv("first", "x", "a"),
    batch_norm("norm", "a", "b"),
    "F.relu act 1 1 b c $input=b",
    conv("second", "x", "d"),
    "torch.cat join 2 1 c d e dim=1",  # both convolutions write into it
    "torch.cat twice 2 1 e d f dim=1",  # d lies in e already, and is copied
    "torch.chunk parts 1 2 f g h chunks=2 dim=1 $input=f",
    "Tensor.permute turn 1 1 g i dims=(0,2,3,1) $input=g",
    "Tensor.reshape flat 1 1 h j shape=(2,-1) $input=h",  # channels-last: takes a copy
    "aten::logcumsumexp sums 1 1 j k dim=1",  # numpy
    "Tensor.slice some 1 1 k l dim=1 start=0 end=8 step=2 $input=k",  # a view of what numpy gave
    "pnnx.Expression dead 1 1 d m expr=add(@0,1.5)",  # nothing reads it
    "F.silu last 1 1 i n $input=i",
    "F.tanh other 1 1 l o $input=l",
    "pnnx.Output out 1 0 n",
    "pnnx.Output out1 1 0 o",
    "pnnx.Output out2 1 0 c",
)
X = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)


def close(ours: Value, wanted: Value, name: str) -> None:
    if not isinstance(wanted, np.ndarray):
        assert type(ours) is type(wanted)
        return
    assert isinstance(ours, np.ndarray)
    assert (ours.shape, ours.dtype) == (wanted.shape, wanted.dtype), name
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    near = 1e-5 if host_target().has_fma else 2e-5  # without it, a product is rounded before it is added
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=near * scale, err_msg=name)


def both(folder: Path) -> tuple[RuntimeGraph, RuntimeGraph]:
    text = "\n".join(LINES)
    graphs = [
        make_graph(folder, text, weights_of(text), backend=backend, threads=2)
        for backend in ("native", "numpy")
    ]
    return graphs[0], graphs[1]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_every_operand_of_a_network(name: str, threads: int) -> None:
    native, plain = open_network(name, "native", threads), open_network(name)
    inputs = arrays(name, "other", "in")
    result = native.run(inputs, capture=list(native.operands))
    wanted = plain.run(inputs, capture=list(plain.operands)).captured
    for output, served in zip(result.outputs, native.forward(inputs), strict=True):
        np.testing.assert_array_equal(output, served)
    assert list(result.captured) == list(native.operands)
    for operand, value in result.captured.items():
        close(value, wanted[operand], operand)
    seen = native.observable([TensorSpec(array.shape, array.dtype) for array in inputs])
    assert seen.keys() == native.operands.keys()
    for operand, backend in result.captured_by.items():
        assert (backend == "native") == (seen[operand] == operand)
        assert seen[seen[operand]] == seen[operand]


def test_observed_is_the_programs_own(tmp_path: Path) -> None:
    """What is captured is computed by the kernels: the operands' last bits are theirs, not numpy's."""
    native, _ = both(tmp_path)
    result = native.run([X], capture=["n", "o", "c"])
    for operand, output in zip(("n", "o", "c"), result.outputs, strict=True):
        np.testing.assert_array_equal(result.captured[operand], output)
    assert set(result.captured_by.values()) == {"native"}


def test_views_parts_and_what_nobody_reads(tmp_path: Path) -> None:
    native, plain = both(tmp_path)
    result = native.run([X], capture=list(native.operands))
    wanted = plain.run([X], capture=list(plain.operands)).captured
    for operand, value in result.captured.items():
        close(value, wanted[operand], operand)
    assert [name for name, backend in result.captured_by.items() if backend == "numpy"] == ["a", "b"]
    seen = native.observable([TensorSpec(X.shape, X.dtype)])
    assert {name: end for name, end in seen.items() if name != end} == {"a": "c", "b": "c"}
    assert plain.observable([TensorSpec(X.shape, X.dtype)]) == {name: name for name in plain.operands}


@pytest.mark.parametrize("operand", "xacdefghijklmno")
def test_one_operand_alone(tmp_path: Path, operand: str) -> None:
    """A run that is cut in one place sees the same as one that is cut everywhere."""
    native, plain = both(tmp_path)
    result = native.run([X], capture=[operand])
    close(result.captured[operand], plain.run([X], capture=[operand]).captured[operand], operand)
    whole = native.run([X], capture=list(native.operands))
    np.testing.assert_array_equal(result.captured[operand], whole.captured[operand])
    for output, served in zip(result.outputs, native.forward([X]), strict=True):
        np.testing.assert_array_equal(output, served)


def test_what_is_captured_stays(tmp_path: Path) -> None:
    native, _ = both(tmp_path)
    names = [name for name in native.operands if name != "x"]
    first = native.run([X], capture=names).captured
    kept = {name: np.array(value) for name, value in first.items()}
    native.run([X + 1], capture=names)
    for name, value in first.items():
        np.testing.assert_array_equal(value, kept[name])


def test_observations_come_in_execution_order(tmp_path: Path) -> None:
    program = compiled(tmp_path, *LINES, threads=2)
    seen = list(observe(program, {"x": X}, ["n", "o", "c"], 1 << 30))
    assert sorted(observation.operand for observation in seen) == list("cdefghijklmnox")
    assert all(_gives(observation) for observation in seen)
    done: set[str] = set()
    for observation in seen:
        done.add(observation.operand)
        needed = {operand.name for operand in observation.operator.inputs} - {"a", "b"}
        assert needed <= done


def _gives(observation: Observation) -> bool:
    return observation.operand in [operand.name for operand in observation.operator.outputs]


def test_statistics_are_those_of_the_program(tmp_path: Path) -> None:
    native, plain = both(tmp_path)
    served, observed = (
        native.run([X], trace=level).trace for level in (TraceLevel.ON, TraceLevel.STATISTICS)
    )
    reference = plain.run([X], trace=TraceLevel.STATISTICS).trace
    assert served is not None
    assert observed is not None
    assert reference is not None
    assert (served.is_observed, observed.is_observed, reference.is_observed) == (False, True, True)
    facts = [(layer.name, layer.backend, layer.fused, layer.fused_into) for layer in served.layers]
    assert [(layer.name, layer.backend, layer.fused, layer.fused_into) for layer in observed.layers] == facts
    ours, wanted = _statistics(observed), _statistics(reference)
    assert ours.keys() == wanted.keys() == native.operands.keys()
    for name, (backend, mean, largest) in ours.items():
        assert backend == ("numpy" if name in "ab" else "native")
        assert wanted[name][0] == "numpy"
        np.testing.assert_allclose([mean, largest], wanted[name][1:], rtol=1e-4, atol=1e-5)
    inputs = [operand for layer in observed.layers for operand in layer.inputs]
    assert all(operand.statistics is None and operand.backend is None for operand in inputs)


def _statistics(trace: RunTrace) -> Mapping[str, tuple[str | None, float, float]]:
    found = {}
    for operand in (operand for layer in trace.layers for operand in layer.outputs):
        measured = operand.statistics
        assert measured is not None
        found[operand.name] = (operand.backend, measured.mean or 0.0, measured.maximum or 0.0)
    return found


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_times_of_runs_that_keep_values_are_marked(tmp_path: Path, backend: str) -> None:
    text = "\n".join(LINES)
    graph = make_graph(tmp_path, text, weights_of(text), backend=backend)
    trace = graph.run([X], trace=TraceLevel.ON, capture=["e"]).trace
    assert trace is not None
    assert trace.is_observed
    assert all(operand.statistics is None for layer in trace.layers for operand in layer.outputs)
    plain = graph.run([X], trace=TraceLevel.ON).trace
    assert plain is not None
    assert not plain.is_observed


def test_an_observed_run_can_be_stopped(tmp_path: Path) -> None:
    native, _ = both(tmp_path)
    asked: list[int] = []

    def stop() -> str | None:
        asked.append(1)
        return "enough" if len(asked) > 3 else None

    with pytest.raises(RunStoppedError, match="enough"):
        native.run([X], capture=["e", "n"], stop=stop)
    assert len(asked) == 4
    np.testing.assert_array_equal(native.forward([X])[0], native.run([X], capture=["n"]).outputs[0])


def test_inputs_and_constants_are_there(tmp_path: Path) -> None:
    text = """pnnx.Input in 0 1 x #x=(1,3)f32
        pnnx.Attribute k 0 1 k @data=(1,3)f32
        pnnx.Expression twice 1 1 k kk expr=mul(@0,2)
        Tensor.size size 1 1 x s dim=1 $input=x
        pnnx.Expression sum 3 1 x kk s y expr=add(add(@0,@1),@2)
        pnnx.Output out 1 0 y"""
    k = np.array([[1, 2, 3]], np.float32)
    graph = make_graph(tmp_path, text, {"k.data": k}, backend="native")
    x: Array = np.array([[4, 5, 6]], np.float32)
    result = graph.run([x], capture=["x", "k", "kk", "s", "y"])
    np.testing.assert_array_equal(result.captured["x"], x)
    np.testing.assert_array_equal(result.captured["k"], k)
    np.testing.assert_array_equal(result.captured["kk"], 2 * k)
    assert result.captured["s"] == 3
    np.testing.assert_array_equal(result.captured["y"], x + 2 * k + 3)
    assert set(result.captured_by.values()) == {"native"}
