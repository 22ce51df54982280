"""Programs for inputs of all lengths: an encoder of sentences, length by length against its reference layers."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from engine import RuntimeGraph, TensorSpec, TraceLevel
from engine.compiler.emit.target import Target, host_target
from engine.compiler.memory.weights import PackedStore
from engine.compiler.program.dynamic_program import DynamicProgram, MisfitError, dynamic_program
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.program import Program
from engine.compiler.program.verifier import verify
from engine.compiler.selection import Selector
from engine.dtypes import Array
from engine.model.build_clock import UNLIMITED
from engine.run.plan import MAX_RUN_BYTES, Plan
from tests.bench.encoder import POSITIONS
from tests.differential.rounding import always_rounding
from tests.engine.compiler.harness import every_target
from tests.engine.compiler.program.test_background import settle
from tests.golden.encoder import LONGEST, golden_outputs, sentence, write_golden_encoder

TOLERANCE = 1e-5
FLOAT, INDEX = np.dtype(np.float32), np.dtype(np.int64)


def specs(length: int, rows: int = 1) -> tuple[TensorSpec, ...]:
    return (TensorSpec((rows, length), INDEX),)


@pytest.fixture(scope="module")
def param(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_golden_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def graph(param: Path) -> RuntimeGraph:
    return opened(param)


def opened(param: Path, backend: str = "native", threads: int = 1) -> RuntimeGraph:
    graph = RuntimeGraph(param, backend=backend, threads=threads)
    graph.build()
    return graph


@pytest.fixture(scope="module")
def expected() -> list[Array]:
    """What PyTorch gives for sentences of 0 to `LONGEST` tokens; of none, nothing."""
    return [np.empty(0), *golden_outputs()[:, None]]


def test_numpy_layers_agree_with_pytorch_at_every_length(param: Path, expected: Sequence[Array]) -> None:
    graph = opened(param, "numpy")
    for length in range(1, LONGEST + 1):
        np.testing.assert_allclose(graph.run([sentence(length)]).outputs[0], expected[length], atol=TOLERANCE)


def make(graph: RuntimeGraph, target: Target, threads: int) -> DynamicProgram:
    leaving = [port.operand for port in graph.outputs]
    selector = Selector(target, threads, PackedStore(), is_dynamic=True)
    return dynamic_program([graph.plan(specs(length)) for length in (7, 19)], leaving, selector, UNLIMITED)


def run(program: Program, x: Array) -> Array:
    plan = program.plan
    (name,) = (step.operator.outputs[0].name for step in plan.steps if step.is_input)
    (out,) = (step.operator.inputs[0].name for step in plan.steps if step.operator.type == "pnnx.Output")
    return NativeRun(program, None, False, MAX_RUN_BYTES).execute({name: x}, [out])[0]


@every_target
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_length_in_any_order(
    graph: RuntimeGraph, expected: Sequence[Array], target: Target, threads: int
) -> None:
    program = make(graph, target, threads)
    lengths = list(range(2, LONGEST + 1))
    random.Random(threads).shuffle(lengths)
    for length in lengths:
        result = run(program.at(graph.plan(specs(length))), sentence(length))
        np.testing.assert_allclose(result, expected[length], atol=TOLERANCE, err_msg=f"{length} tokens")


@every_target
def test_threads_change_no_bit(graph: RuntimeGraph, target: Target) -> None:
    one, three = (make(graph, target, threads) for threads in (1, 3))
    for length in (2, 17, 100):
        plan, x = graph.plan(specs(length)), sentence(length)
        np.testing.assert_array_equal(run(one.at(plan), x), run(three.at(plan), x))


@every_target
@pytest.mark.parametrize("length", [2, 9, 16, 50])
def test_each_operator_agrees_with_its_numpy_layer(graph: RuntimeGraph, target: Target, length: int) -> None:
    program = make(graph, target, 1).at(graph.plan(specs(length)))
    names = [port.operand for port in graph.inputs], [port.operand for port in graph.outputs]
    verdict = verify(program, specs(length), *names)
    assert verdict.is_checked
    assert verdict.refusal is None


def test_one_code_and_one_copy_of_the_weights_serve_all_lengths(graph: RuntimeGraph) -> None:
    program = make(graph, host_target(), 1)
    short, long = (program.at(graph.plan(specs(length))) for length in (5, 50))
    assert {id(array) for array in short.constants} == {id(array) for array in long.constants}
    assert short.arrangement.size < long.arrangement.size
    codes = [[step.code for part in one.instructions if hasattr(part, "segment") for step in part.segment.steps]
             for one in (short, long)]  # fmt: skip
    assert codes[0] == codes[1]


def test_a_kernel_that_was_not_compiled_is_not_used(graph: RuntimeGraph) -> None:
    program = make(graph, host_target(), 1)
    few = dict(list(program.codes.items())[1:])
    with pytest.raises(MisfitError, match="other kernels"):
        replace(program, codes=few).at(graph.plan(specs(20)))


def test_one_token_has_a_program_of_its_own(graph: RuntimeGraph, expected: Sequence[Array]) -> None:
    with pytest.raises(MisfitError, match="other kernels"):
        make(graph, host_target(), 1).at(graph.plan(specs(1)))
    np.testing.assert_allclose(graph.run([sentence(1)]).outputs[0], expected[1], atol=TOLERANCE)


def backends(graph: RuntimeGraph, x: Array) -> set[str]:
    trace = graph.run([x], trace=TraceLevel.ON, waits=False).trace
    assert trace is not None
    return {layer.backend for layer in trace.layers if layer.type == "nn.Linear"}


def test_a_graph_that_was_prepared_runs_each_new_length_in_kernels(
    graph: RuntimeGraph, expected: Sequence[Array]
) -> None:
    graph.prepare(specs(1))
    for length in (60, 7, 2, 33):
        assert backends(graph, sentence(length)) == {"native"}
        np.testing.assert_allclose(
            graph.run([sentence(length)], waits=False).outputs[0], expected[length], atol=TOLERANCE
        )
    assert graph.compilation.compiled == 2
    settle()
    assert graph.verification.refused_count == 0


def test_two_lengths_are_worth_a_program_for_all(graph: RuntimeGraph) -> None:
    assert backends(graph, sentence(9)) == {"numpy"}
    settle()
    assert backends(graph, sentence(12)) == {"numpy"}
    settle()
    assert backends(graph, sentence(9)) == backends(graph, sentence(40)) == {"native"}
    assert graph.compilation.compiled == 1


def test_a_run_that_waits_has_it_made_at_the_second_length(
    graph: RuntimeGraph, expected: Sequence[Array]
) -> None:
    for length in (9, 12, 40, 41, 42):
        np.testing.assert_allclose(graph.run([sentence(length)]).outputs[0], expected[length], atol=TOLERANCE)
    assert graph.compilation.compiled == 2


@pytest.fixture
def always_rounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Round all that can be, and compile what came twice."""
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))
    with always_rounding():
        yield


def ran(
    graph: RuntimeGraph, length: int, expected: Sequence[Array], tolerance: float
) -> set[tuple[str, str]]:
    """Run a length, and return which backends and precisions computed its linear layers."""
    result = graph.run([sentence(length)], trace=TraceLevel.ON, waits=False)
    np.testing.assert_allclose(result.outputs[0], expected[length], atol=tolerance)
    assert result.trace is not None
    return {(layer.backend, layer.precision) for layer in result.trace.layers if layer.type == "nn.Linear"}


@pytest.mark.usefixtures("always_rounds")
@pytest.mark.parametrize("precision", ["bf16", "auto"])
def test_in_bfloat16_the_program_for_all_lengths_stands_in(
    param: Path, expected: Sequence[Array], precision: str
) -> None:
    graph = RuntimeGraph(param, backend="native", precision=precision, tolerance=0.5)
    graph.build()
    for length in (20, 33):
        assert ran(graph, length, expected, TOLERANCE) == {("numpy", "f32")}
    settle()
    for length in (7, 20, 33):
        assert ran(graph, length, expected, TOLERANCE) == {("native", "f32")}
    settle()
    own = ran(graph, 20, expected, 0.1)
    assert (
        own == {("native", "bf16")} if precision == "bf16" else {backend for backend, _ in own} == {"native"}
    )
    assert ran(graph, 7, expected, TOLERANCE) == {("native", "f32")}  # it came once before
    assert graph.compilation.compiled >= 3
    assert not graph.verification.refused


@contextmanager
def never_rounds() -> Iterator[None]:
    """Estimate that nothing is faster in bfloat16, as on most processors without instructions for it."""
    with patch.object(Selector, "rounds", lambda *_: False):
        yield


@pytest.mark.parametrize("precision", ["bf16", "auto"])
def test_where_nothing_would_be_rounded_the_program_for_all_lengths_is_all_that_is_compiled(
    param: Path, expected: Sequence[Array], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))
    graph = RuntimeGraph(param, backend="native", precision=precision, tolerance=0.5)
    graph.build()
    with never_rounds():
        for length in (20, 33):
            assert ran(graph, length, expected, TOLERANCE) == {("numpy", "f32")}
        settle()
        for length in (7, 20, 33) * 3:
            assert ran(graph, length, expected, TOLERANCE) == {("native", "f32")}
            settle()
        assert graph.compilation.compiled == 1
        assert graph.compilation.waiting == 0
        assert not graph.is_compiled(specs(20))


def test_what_would_not_be_rounded_is_compiled_where_no_program_serves_all_lengths(
    param: Path, expected: Sequence[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))
    graph = RuntimeGraph(param, backend="native", precision="bf16")
    graph.build()
    with never_rounds():
        for length in (20, 33):
            ran(graph, length, expected, TOLERANCE)
        settle()
        ran(graph, 33, expected, TOLERANCE)
        settle()
        monkeypatch.setattr(DynamicProgram, "at", wrong_program_at)
        graph.run([sentence(7)], waits=False)
        settle()
        assert graph.verification.refused_count == 1
        for _ in range(2):
            assert ran(graph, 33, expected, TOLERANCE) == {("numpy", "f32")}
        settle()
        assert ran(graph, 33, expected, TOLERANCE) == {("native", "f32")}
        assert graph.is_compiled(specs(33))


@pytest.mark.usefixtures("always_rounds")
def test_runs_that_wait_have_programs_in_bfloat16(param: Path, expected: Sequence[Array]) -> None:
    graph = RuntimeGraph(param, backend="native", precision="bf16")
    graph.build()
    for length in (20, 33, 20):
        graph.run([sentence(length)])
        assert ran(graph, length, expected, 0.1) == {("native", "bf16")}
    assert graph.compilation.compiled == 2


def test_a_length_that_the_model_does_not_take_is_an_error_of_its_layer(graph: RuntimeGraph) -> None:
    graph.prepare(specs(1))
    with pytest.raises(Exception, match="places"):
        graph.run([sentence(POSITIONS + 1)], waits=False)
    assert backends(graph, sentence(POSITIONS)) == {"native"}


OPEN_PROGRAM_AT = DynamicProgram.at


def wrong_program_at(self: DynamicProgram, plan: Plan) -> Program:
    """Replaces `DynamicProgram.at`: a constant of the program is wrong."""
    program = OPEN_PROGRAM_AT(self, plan)
    next(iter(program.constants))[...] = 1.0
    return program


def test_a_program_that_differs_is_not_used(graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DynamicProgram, "at", wrong_program_at)
    graph.prepare(specs(1))
    assert graph.verification.refused_count == 1
    assert backends(graph, sentence(20)) == {"numpy"}


def test_a_length_that_differs_ends_the_use_of_the_program(
    graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.prepare(specs(1))
    monkeypatch.setattr(DynamicProgram, "at", wrong_program_at)
    backends(graph, sentence(20))
    settle()
    assert graph.verification.refused_count == 1
    assert backends(graph, sentence(21)) == {"numpy"}


def test_a_length_that_is_made_while_the_program_is_refused_is_not_used(
    graph: RuntimeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.prepare(specs(1))

    def late(self: DynamicProgram, plan: Plan) -> Program:
        monkeypatch.setattr(DynamicProgram, "at", wrong_program_at)
        if plan.specs[graph.inputs[0].operand] == specs(21)[0]:
            backends(graph, sentence(20))
            settle()
        return wrong_program_at(self, plan)

    monkeypatch.setattr(DynamicProgram, "at", late)
    assert backends(graph, sentence(21)) == {"numpy"}
    assert graph.verification.refused_count == 1
