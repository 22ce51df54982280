"""Runs that kernels do alone: the same results and errors as those of the general way, and nothing left behind."""

import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import InputError, LayerError, RunStoppedError, RuntimeGraph, TraceLevel
from engine.compiler.memory.alignment import row_by_row
from engine.compiler.program import kernel_run as module
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.instruction import NativeSteps
from engine.compiler.program.kernel_run import KernelRun, kernel_run
from engine.compiler.program.program import Program
from engine.compiler.threads.segment import Segment
from engine.dtypes import Array
from engine.run.stop import StopSignal
from tests.engine.compiler.plans import IMAGE, compiled, conv, weights_of
from tests.engine.models import make_graph

KERNELS = (
    IMAGE,
    conv("first", "x", "a"),
    "F.softmax soft 1 1 a y dim=1 $input=a",
    "pnnx.Output out 1 0 y",
)
TWO_INPUTS = (
    IMAGE,
    "pnnx.Input other 0 1 z #z=(2,4,5,6)f32",
    conv("first", "x", "a"),
    "pnnx.Expression mix 2 1 z a b expr=mul(@0,@1)",
    "F.relu act 1 1 b y $input=b",
    "pnnx.Output out 1 0 y",
)
TWO_OUTPUTS = (*KERNELS, "F.relu act 1 1 a b $input=a", "pnnx.Output second 1 0 b")
WITH_NUMPY = (*KERNELS[:3], "torch.cumprod sum 1 1 y b dim=1 $input=y", "pnnx.Output out 1 0 b")
INPUT_LEAVES = (*KERNELS, "pnnx.Output second 1 0 x")
CONSTANT_LEAVES = (*KERNELS, "pnnx.Attribute c 0 1 c @data=(3)f32", "pnnx.Output second 1 0 c")
LEAVES_TWICE = (*KERNELS, "pnnx.Output second 1 0 y")
TUPLE_LEAVES = (*KERNELS[:3], "prim::TupleConstruct both 2 1 y y b", "pnnx.Output out 1 0 b")
X = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)
Z = np.random.default_rng(1).standard_normal((2, 4, 5, 6)).astype(np.float32)
UNLIMITED = 1 << 30


def graph_of(folder: Path, *lines: str, backend: str = "native", **options: Any) -> RuntimeGraph:
    text = "\n".join(lines)
    folder.mkdir(exist_ok=True)
    return make_graph(folder, text, weights_of(text), backend=backend, **options)


def kernels_of(program: Program, *outputs: str) -> KernelRun:
    made = kernel_run(program, outputs)
    assert made is not None
    return made


def pretend(monkeypatch: pytest.MonkeyPatch, run: Callable[..., int]) -> None:
    """Have a function of Python's run segments."""
    monkeypatch.setattr(module, "run_segment", run)


@pytest.mark.parametrize(
    ("lines", "is_of_kernels"),
    [
        (KERNELS, True),
        (TWO_INPUTS, True),
        (TWO_OUTPUTS, True),
        (WITH_NUMPY, False),
        (INPUT_LEAVES, False),
        (CONSTANT_LEAVES, False),
        (LEAVES_TWICE, False),
        (TUPLE_LEAVES, False),
    ],
)
def test_outputs_are_those_of_the_general_way(
    tmp_path: Path, lines: Sequence[str], is_of_kernels: bool
) -> None:
    graph = graph_of(tmp_path / "native", *lines)
    given = {port.operand: {"x": X, "z": Z}[port.operand] for port in graph.inputs}
    outputs = [line.split()[4] for line in lines if line.startswith("pnnx.Output")]
    program = compiled(tmp_path, *lines)
    assert (kernel_run(program, outputs) is not None) is is_of_kernels
    general = NativeRun(program, None, False, UNLIMITED).execute(given, outputs)
    plain = graph_of(tmp_path / "numpy", *lines, backend="numpy").forward(given)
    for stop in (None, StopSignal()):
        results = graph.run(given, stop=stop).outputs
        assert len(results) == len(general) == len(plain)
        for result, same, alike in zip(results, general, plain, strict=True):
            assert result.dtype == same.dtype
            np.testing.assert_array_equal(result, same)
            np.testing.assert_allclose(result, alike, rtol=1e-5, atol=1e-5)


def test_outputs_come_in_the_order_that_is_asked_for(tmp_path: Path) -> None:
    program = compiled(tmp_path, *TWO_OUTPUTS)
    y, b = kernels_of(program, "y", "b").execute({"x": X}, None)
    swapped = kernels_of(program, "b", "y").execute({"x": X}, None)
    np.testing.assert_array_equal(swapped[0], b)
    np.testing.assert_array_equal(swapped[1], y)
    assert kernel_run(program, ["y"]) is None
    assert kernel_run(program, ["y", "y"]) is None


def test_only_runs_that_ask_for_no_more_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(tmp_path, *KERNELS)
    (wanted,) = graph.forward([X])
    general: list[int] = []
    execute = NativeRun.execute

    def count(run: NativeRun, *arguments: Any) -> list[Array]:
        general.append(1)
        return execute(run, *arguments)

    monkeypatch.setattr(NativeRun, "execute", count)
    np.testing.assert_array_equal(graph.run([X], stop=StopSignal()).outputs[0], wanted)
    assert not general
    asked: list[int] = []
    runs: list[dict[str, Any]] = [
        {"trace": TraceLevel.ON},
        {"trace": TraceLevel.STATISTICS},
        {"capture": ["y"]},
        {"stop": lambda: asked.append(1)},
    ]
    for count_so_far, options in enumerate(runs):
        np.testing.assert_array_equal(graph.run([X], **options).outputs[0], wanted)
        assert len(general) == count_so_far + 1
    assert len(asked) == len(compiled(tmp_path, *KERNELS).calls)


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_at_once_give_what_runs_in_turn_give(tmp_path: Path, threads: int) -> None:
    graph = graph_of(tmp_path, *TWO_OUTPUTS, threads=threads)
    given = list(np.random.default_rng(1).standard_normal((60, *X.shape)).astype(np.float32))
    in_turn = [graph.forward([image]) for image in given]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda image: graph.run([image], stop=StopSignal()).outputs, given))
    for outputs, wanted in zip(at_once, in_turn, strict=True):
        for output, array in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(output, array)


def test_each_of_two_runs_at_once_has_an_arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2, timeout=60)
    tables: list[int] = []
    program = compiled(tmp_path, *KERNELS)

    def run(threads: int, segment: Segment, table: int, *rest: object) -> int:
        tables.append(table)
        meeting.wait()
        return len(segment)

    pretend(monkeypatch, run)
    made = kernels_of(program, "y")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: made.execute({"x": X}, None), range(2)))
    assert len(set(tables)) == 2


def unaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved = memory[1:].view(np.float32).reshape(array.shape)
    moved[...] = array
    return moved


def read_only(array: Array) -> Array:
    return np.frombuffer(array.tobytes(), np.float32).reshape(array.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "reversed": lambda array: array[..., ::-1].copy()[..., ::-1],
    "transposed": lambda array: array.transpose(3, 2, 1, 0).copy().transpose(3, 2, 1, 0),
    "unaligned": unaligned,
    "read-only": read_only,
    "big-endian": lambda array: array.astype(">f4"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_lie_in_memory_as_they_like(tmp_path: Path, layout: str) -> None:
    graph = graph_of(tmp_path, *KERNELS)
    (wanted,) = graph.forward([X])
    given = LAYOUTS[layout](X)
    np.testing.assert_array_equal(graph.forward([given])[0], wanted)
    np.testing.assert_array_equal(given, X)


def test_inputs_of_other_types_become_float32_as_in_the_general_way(tmp_path: Path) -> None:
    program = compiled(tmp_path, *KERNELS)
    doubles = np.random.default_rng(3).standard_normal(X.shape)
    (result,) = kernels_of(program, "y").execute({"x": doubles}, None)
    (wanted,) = NativeRun(program, None, False, UNLIMITED).execute({"x": doubles}, ["y"])
    np.testing.assert_array_equal(result, wanted)
    with pytest.raises(InputError, match="dtype is f64"):
        graph_of(tmp_path, *KERNELS).forward([doubles])


def test_copies_of_inputs_live_as_long_as_the_kernels_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled(tmp_path, *TWO_INPUTS)
    copies: list[weakref.ref[Array]] = []
    alive: list[bool] = []

    def note(array: Array) -> Array:
        copies.append(weakref.ref(copy := row_by_row(array)))
        return copy

    def run(threads: int, segment: Segment, *rest: object) -> int:
        alive.extend(copy() is not None for copy in copies)
        return len(segment)

    monkeypatch.setattr(module, "row_by_row", note)
    pretend(monkeypatch, run)
    given = {"x": LAYOUTS["reversed"](X), "z": LAYOUTS["transposed"](Z)}
    kernels_of(program, "y").execute(given, None)
    assert alive == [True, True]
    assert [copy() for copy in copies] == [None, None]


def test_results_lie_in_memory_of_their_own(tmp_path: Path) -> None:
    program = compiled(tmp_path, *TWO_OUTPUTS)
    arena = program.arenas.take()
    program.arenas.give_back(arena)  # the next run takes it
    made = kernels_of(program, "y", "b")
    results = [*made.execute({"x": X}, None), *made.execute({"x": X}, None)]
    for place, output in enumerate(results):
        assert output.flags.writeable
        assert not np.may_share_memory(output, arena.memory)
        assert not np.may_share_memory(output, X)
        assert not any(np.may_share_memory(output, other) for other in results[:place])


@pytest.mark.parametrize("threads", [1, 2])
def test_signal_stops_with_the_same_words(tmp_path: Path, threads: int) -> None:
    graph = graph_of(tmp_path, *KERNELS, threads=threads)
    signal = StopSignal()
    signal.stop("the client has gone")
    for options in ({}, {"trace": TraceLevel.ON}):
        with pytest.raises(RunStoppedError, match="^stopped before nn.Conv2d first: the client has gone$"):
            graph.run([X], stop=signal, **options)  # type: ignore[arg-type]
    with pytest.raises(RunStoppedError, match="^stopped before nn.Conv2d first: too late$"):
        graph.run([X], stop=StopSignal(0.0, "too late"))


def test_stopped_run_names_the_operator_that_it_came_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled(tmp_path, *KERNELS)
    (instruction,) = program.instructions
    assert isinstance(instruction, NativeSteps)
    softmax = instruction.owners.index(2)
    signal = StopSignal()

    def run(threads: int, segment: Segment, table: int, stamps: object, stop: StopSignal) -> int:
        assert stop is signal
        signal.stop("enough")
        return softmax

    arena = program.arenas.take()
    program.arenas.give_back(arena)
    pretend(monkeypatch, run)
    with pytest.raises(RunStoppedError, match="^stopped before F.softmax soft: enough$"):
        kernels_of(program, "y").execute({"x": X}, signal)
    assert program.arenas.take() is arena


def test_shapes_that_were_not_planned_are_refused_with_the_same_words(tmp_path: Path) -> None:
    program = compiled(tmp_path, *KERNELS)
    arena = program.arenas.take()
    program.arenas.give_back(arena)
    words = r"^a tensor of shape \(1, 3, 5, 6\) came where \(2, 3, 5, 6\) was planned$"
    with pytest.raises(LayerError, match=words):
        kernels_of(program, "y").execute({"x": X[:1]}, None)
    with pytest.raises(LayerError, match=words):
        NativeRun(program, None, False, UNLIMITED).execute({"x": X[:1]}, ["y"])
    assert program.arenas.take() is arena


def test_nothing_of_a_run_stays(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *KERNELS)
    graph.forward([X])
    given = X.copy()
    outputs = graph.run({"x": given}, stop=(signal := StopSignal())).outputs
    gone: list[weakref.ref[Any]] = [weakref.ref(given), weakref.ref(outputs[0])]
    del given, outputs, signal
    assert [ref() for ref in gone] == [None, None]


def test_program_goes_with_its_graph(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *KERNELS)
    graph.forward([X])
    gone = _program_of(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_program_goes_where_another_takes_its_place(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, *KERNELS, programs_kept=1)
    graph.forward([X])
    gone = _program_of(graph)
    graph.forward([X[:1]])
    gc.collect()
    assert gone() is None


def _program_of(graph: RuntimeGraph) -> weakref.ref[Program]:
    (found,) = [
        program
        for program in gc.get_objects()
        if type(program) is Program and program.plan.steps[0].operator is graph.execution_order[0]
    ]
    return weakref.ref(found)
