"""Programs in int8 for inputs of all lengths: the integers of numpy's layers at each, and near what PyTorch gives."""

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine import Activation, Quantization, RuntimeGraph, TraceLevel
from engine.compiler.emit.target import Target, target_named
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program import dynamic_programs, programs
from engine.compiler.program.dynamic_program import DynamicProgram, dynamic_program
from engine.compiler.program.verifier import verify
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.model.build_clock import UNLIMITED
from engine.precision import Precision
from tests.engine.compiler.contraction.test_int8_convolution import every_arithmetic
from tests.engine.compiler.program.test_background import settle
from tests.engine.compiler.program.test_dynamic_program import run, specs
from tests.engine.models import write_model
from tests.golden.encoder import LONGEST, golden_outputs, sentence, write_golden_encoder
from tests.golden.rounded_networks import allowed, calibrated, distance

LAYERS = 13
"""Layers of the encoder that multiply integers."""
NEAR = 0.02
"""How far outputs may be from those of numpy's layers: a sum's last digits may move what is rounded by a step."""

every_thread = pytest.mark.parametrize("threads", [1, 2, 3])


@pytest.fixture(autouse=True)
def _no_matrix_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program for all lengths be the one that is used, on processors with AMX as well."""
    monkeypatch.setattr(programs, "is_only_a_fallback", lambda _: False)


@pytest.fixture(scope="module")
def param(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_golden_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(scope="module")
def quantization(param: Path) -> Quantization:
    graph = RuntimeGraph(param, backend="numpy")
    graph.build()
    return calibrated(graph, [sentence(LONGEST)])


def opened(
    param: Path, quantization: Quantization, backend: str = "native", threads: int = 1
) -> RuntimeGraph:
    graph = RuntimeGraph(param, backend=backend, quantization=quantization, threads=threads)
    graph.build()
    return graph


@pytest.fixture
def graph(param: Path, quantization: Quantization) -> RuntimeGraph:
    return opened(param, quantization)


@pytest.fixture(scope="module")
def by_numpy(param: Path, quantization: Quantization) -> list[Array]:
    """What numpy's layers of int8 give for sentences of 0 to `LONGEST` tokens; of none, nothing."""
    graph = opened(param, quantization, "numpy")
    return [np.empty(0), *(graph.run([sentence(length)]).outputs[0] for length in range(1, LONGEST + 1))]


def make(graph: RuntimeGraph, target: Target, threads: int) -> DynamicProgram:
    leaving = [port.operand for port in graph.outputs]
    selector = Selector(target, threads, PackedStore(), Precision.INT8, is_dynamic=True)
    return dynamic_program([graph.plan(specs(length)) for length in (7, 19)], leaving, selector, UNLIMITED)


@every_arithmetic
@every_thread
def test_every_length_in_any_order(
    graph: RuntimeGraph, by_numpy: Sequence[Array], target: Target, threads: int
) -> None:
    program, of_pytorch = make(graph, target, threads), golden_outputs()
    lengths = list(range(2, LONGEST + 1))
    random.Random(threads).shuffle(lengths)
    for length in lengths:
        result = run(program.at(graph.plan(specs(length))), sentence(length))
        assert distance([result], [by_numpy[length]]) <= NEAR, f"{length} tokens"
        off = distance([result[0]], [of_pytorch[length - 1]])
        assert off <= allowed("int8", LAYERS, 0.0), f"{length} tokens"


@every_arithmetic
@pytest.mark.parametrize("length", [2, 9, 16, 51])
def test_each_operator_agrees_with_its_numpy_layer(graph: RuntimeGraph, target: Target, length: int) -> None:
    program = make(graph, target, 1).at(graph.plan(specs(length)))
    names = [port.operand for port in graph.inputs], [port.operand for port in graph.outputs]
    verdict = verify(program, specs(length), *names)
    assert verdict.is_checked
    assert verdict.refusal is None
    integers = {place for place, step in enumerate(program.plan.steps) if step.layer.int8 is not None}
    assert len(integers) == LAYERS
    assert {program.precisions[place] for place in integers} == {Precision.INT8}


@every_arithmetic
def test_threads_change_no_bit(graph: RuntimeGraph, target: Target) -> None:
    one, three = (make(graph, target, threads) for threads in (1, 3))
    for length in (2, 17, 100):
        plan, x = graph.plan(specs(length)), sentence(length)
        np.testing.assert_array_equal(run(one.at(plan), x), run(three.at(plan), x))


@pytest.mark.parametrize("length", [2, 7, 64, 99])
def test_layers_that_multiply_integers_give_the_bits_of_numpy(graph: RuntimeGraph, length: int) -> None:
    graph.prepare(specs(1))
    steps = [step for step in graph.plan(specs(length)).steps if step.layer.int8 is not None]
    names = {operand.name for step in steps for operand in (*step.operator.inputs, *step.operator.outputs)}
    result = graph.run([sentence(length)], capture=sorted(names), waits=False)
    compared = 0
    for step in steps:
        (x,), (y,) = step.operator.inputs, step.operator.outputs
        if {result.captured_by[x.name], result.captured_by[y.name]} != {"native"}:
            continue  # it stays in the registers of a kernel that does more
        given, gives = result.captured[x.name], result.captured[y.name]
        assert step.layer.int8 is not None
        assert isinstance(given, np.ndarray)
        np.testing.assert_array_equal(gives, step.layer.int8.run(given), step.operator.name)
        compared += 1
    assert compared >= 6  # queries, keys and values at least


def ran(graph: RuntimeGraph, x: Array) -> set[tuple[str, str]]:
    """Return which backends and precisions computed the linear layers of a run that does not wait."""
    trace = graph.run([x], trace=TraceLevel.ON, waits=False).trace
    assert trace is not None
    return {(layer.backend, layer.precision) for layer in trace.layers if layer.type == "nn.Linear"}


def test_a_graph_that_was_prepared_runs_each_new_length_in_kernels(
    graph: RuntimeGraph, by_numpy: Sequence[Array]
) -> None:
    graph.prepare(specs(1))
    for length in (60, 7, 2, 33):
        assert ran(graph, sentence(length)) == {("native", "int8")}
        result = graph.run([sentence(length)], waits=False).outputs
        assert distance(result, [by_numpy[length]]) <= NEAR
    assert graph.compilation.compiled == 2
    settle()
    assert graph.verification.refused_count == 0


def test_two_lengths_are_worth_a_program_for_all(graph: RuntimeGraph) -> None:
    for length in (9, 12):
        assert ran(graph, sentence(length)) == {("numpy", "int8")}
        settle()
    assert ran(graph, sentence(9)) == ran(graph, sentence(40)) == {("native", "int8")}
    assert graph.compilation.compiled == 1


def test_with_matrix_registers_the_program_for_all_lengths_stands_in(
    param: Path, quantization: Quantization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))
    monkeypatch.setattr(programs, "is_only_a_fallback", lambda _: True)
    graph = opened(param, quantization)
    graph.prepare(specs(1))
    assert graph.compilation.compiled == 1
    for length in (20, 33):
        assert ran(graph, sentence(length)) == {("numpy", "int8")}
    settle()
    assert ran(graph, sentence(20)) == {("native", "int8")}
    assert not graph.is_compiled(specs(20))
    settle()
    assert graph.is_compiled(specs(20))
    assert ran(graph, sentence(20)) == ran(graph, sentence(7)) == {("native", "int8")}
    assert not graph.is_compiled(specs(7))


@pytest.mark.parametrize(("name", "has_faster"), [("amx", True), ("vnni", False), ("avx2", False)])
def test_which_programs_are_only_a_fallback(
    name: str, has_faster: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamic_programs, "host_target", lambda: target_named(name))
    given = {precision for precision in Precision if dynamic_programs.is_only_a_fallback(precision)}
    assert given == {Precision.BF16, Precision.AUTO} | ({Precision.INT8} if has_faster else set())


@every_thread
def test_rows_and_lengths_of_any_number(tmp_path: Path, threads: int) -> None:
    """Nothing but layers of integers, and what is exact: the bits of the reference layers."""
    text = "\n".join(
        (
            "pnnx.Input in 0 1 x #x=(?,?,37)f32",
            "nn.Linear a 1 1 x y bias=True in_features=37 out_features=50 @bias=(50)f32 @weight=(50,37)f32",
            "nn.ReLU r 1 1 y z",
            "nn.Linear b 1 1 z w bias=False in_features=50 out_features=3 @weight=(3,50)f32",
            "pnnx.Output out 1 0 w",
        )
    )
    draw = np.random.default_rng(0).standard_normal
    weights = {
        name: draw(shape).astype(np.float32)
        for name, shape in (("a.weight", (50, 37)), ("a.bias", 50), ("b.weight", (3, 50)))
    }
    param = write_model(tmp_path, text, weights)
    both = Quantization(dict.fromkeys("ab", Activation.DYNAMIC), {})
    native, plain = opened(param, both, "native", threads), opened(param, both, "numpy")
    for rows in (1, 2, 3):
        for length in (9, 12, 2, 101, 16, 33):
            x = draw((rows, length, 37)).astype(np.float32)
            np.testing.assert_array_equal(native.run([x]).outputs[0], plain.run([x]).outputs[0])
            assert ran(native, x) == {("native", "int8")}
    assert native.compilation.compiled == 4  # for one row and for several, the first size and all sizes
    assert native.verification.refused_count == 0
