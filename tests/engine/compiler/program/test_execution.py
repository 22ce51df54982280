"""Runs of compiled programs: many at once, stopped early, and none the worse for others."""

import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import LayerError, RunStoppedError, RuntimeGraph, TraceLevel
from engine.compiler.program.execution import NativeRun
from engine.compiler.program.instruction import NativeSteps, NumpyStep
from engine.dtypes import Array
from engine.run.stop import StopSignal
from tests.engine.compiler.plans import IMAGE, compiled, conv, weights_of
from tests.engine.models import make_graph

LINES = (
    IMAGE,
    conv("first", "x", "a"),
    "F.relu act 1 1 a b $input=a",
    "torch.cumprod sum 1 1 b c dim=1 $input=b",
    "pnnx.Expression mix 2 1 c b d expr=mul(@0,@1)",
    "F.softmax soft 1 1 d y dim=1 $input=d",
    "pnnx.Output out 1 0 y",
)
X = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(np.float32)


def graph_of(folder: Path, *lines: str, threads: int = 1) -> RuntimeGraph:
    text = "\n".join(lines or LINES)
    return make_graph(folder, text, weights_of(text), backend="native", threads=threads)


def images(count: int) -> list[Array]:
    return list(np.random.default_rng(1).standard_normal((count, *X.shape)).astype(np.float32))


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_at_once_give_what_runs_in_turn_give(tmp_path: Path, threads: int) -> None:
    graph = graph_of(tmp_path, threads=threads)
    given = images(40)
    in_turn = [graph.forward([image])[0] for image in given]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda image: graph.forward([image])[0], given))
    for output, wanted in zip(at_once, in_turn, strict=True):
        np.testing.assert_array_equal(output, wanted)


def test_results_lie_in_memory_of_their_own(tmp_path: Path) -> None:
    program = compiled(tmp_path, *LINES)
    arena = program.arenas.take()
    program.arenas.give_back(arena)  # the next run takes it
    first, second = (NativeRun(program, None, False, 1 << 30).execute({"x": X}, ["y", "c"]) for _ in range(2))
    for output in (*first, *second):
        assert not np.may_share_memory(output, arena.memory)
    for output, other in zip(first, second, strict=True):
        assert not np.may_share_memory(output, other)
        np.testing.assert_array_equal(output, other)


def test_numpy_layer_cannot_write_to_the_arena(tmp_path: Path) -> None:
    run = NativeRun(program := compiled(tmp_path, *LINES), None, False, 1 << 30)
    arena = program.arenas.take()
    (slot,) = program.exports
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(run._value(slot, arena))[...] = 0


def test_arena_comes_back_from_a_run_that_fails(tmp_path: Path) -> None:
    lines = (
        *LINES[:3],
        "pnnx.Expression m 1 1 b m expr=gt(@0,0)",
        "torch.masked_select s 2 1 b m c $input=b $mask=m",
        "Tensor.reshape r 1 1 c y shape=(3,100000) $input=c",
        "pnnx.Output out 1 0 y",
    )
    program = compiled(tmp_path, *lines)
    arena = program.arenas.take()
    program.arenas.give_back(arena)
    with pytest.raises(LayerError, match="Tensor.reshape r"):
        NativeRun(program, None, False, 1 << 30).execute({"x": X}, ["y"])
    assert program.arenas.take() is arena


@pytest.mark.parametrize("place", range(4))
def test_callable_stops_between_layers(tmp_path: Path, place: int) -> None:
    """Its reason is the one of the time that it stopped the run."""
    graph = graph_of(tmp_path)
    asked: list[int] = []

    def stop() -> str | None:
        asked.append(len(asked))
        return f"asked {len(asked)} times" if len(asked) == place + 1 else None

    with pytest.raises(RunStoppedError, match=rf"^stopped before \S+ \S+: asked {place + 1} times$"):
        graph.run([X], stop=stop)
    assert len(asked) == place + 1
    np.testing.assert_array_equal(graph.forward([X])[0], graph.forward([X])[0])


def test_callable_that_never_stops_changes_nothing(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    result = graph.run([X], stop=lambda: None, trace=TraceLevel.ON)
    np.testing.assert_array_equal(result.outputs[0], graph.forward([X])[0])
    assert result.trace is not None
    assert all(layer.duration_us >= 0 for layer in result.trace.layers)


def test_signal_stops_before_the_first_layer(tmp_path: Path) -> None:
    signal = StopSignal()
    signal.stop("the client has gone")
    with pytest.raises(RunStoppedError, match="^stopped before nn.Conv2d first: the client has gone$"):
        graph_of(tmp_path).run([X], stop=signal)


def test_deadline_that_has_passed_stops(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="^stopped before nn.Conv2d first: too late$"):
        graph_of(tmp_path).run([X], stop=StopSignal(0.0, "too late"))


def test_signal_that_comes_during_a_numpy_layer_stops_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal = StopSignal()
    graph = graph_of(tmp_path)
    graph.forward([X])
    run_numpy = NativeRun._run_numpy

    def stop_then_run(run: NativeRun, *arguments: object) -> None:
        run_numpy(run, *arguments)  # type: ignore[arg-type]
        signal.stop("enough")

    monkeypatch.setattr(NativeRun, "_run_numpy", stop_then_run)
    with pytest.raises(RunStoppedError, match="^stopped before pnnx.Expression mix: enough$"):
        graph.run([X], stop=signal)


def test_values_are_let_go_after_their_last_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run holds no more than the plan says, however many layers numpy runs."""
    lines = (
        IMAGE,
        "torch.cumprod s 1 1 x a dim=1 $input=x",
        "F.relu r 1 1 a b $input=a",
        "torch.cumprod t 1 1 b c dim=2 $input=b",
        "F.relu q 1 1 c y $input=c",
        "pnnx.Output out 1 0 y",
    )
    program = compiled(tmp_path, *lines)
    assert list(map(type, program.instructions)) == [NumpyStep, NativeSteps, NumpyStep, NativeSteps]
    alive: list[weakref.ref[Array]] = []
    seen: list[int] = []
    run_numpy, run_native = NativeRun._run_numpy, NativeRun._run_native

    def watch_numpy(run: NativeRun, instruction: NumpyStep, arena: object) -> None:
        run_numpy(run, instruction, arena)  # type: ignore[arg-type]
        alive.append(weakref.ref(run.values[program.plan.steps[instruction.step].outputs[0]]))

    def watch_native(run: NativeRun, instruction: NativeSteps, arena: object) -> None:
        run_native(run, instruction, arena)  # type: ignore[arg-type]
        gc.collect()
        seen.append(sum(ref() is not None for ref in alive))

    monkeypatch.setattr(NativeRun, "_run_numpy", watch_numpy)
    monkeypatch.setattr(NativeRun, "_run_native", watch_native)
    NativeRun(program, None, False, 1 << 30).execute({"x": X}, ["y"])
    assert seen == [1, 1]


def test_graph_goes_with_its_last_user(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    graph.forward([X])
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_do_not_change_results(tmp_path: Path, threads: int) -> None:
    (wanted,) = graph_of(tmp_path).forward([X])
    shared = graph_of(tmp_path, threads=threads)
    for _ in range(5):
        np.testing.assert_array_equal(shared.forward([X])[0], wanted)


def test_first_runs_at_once_compile_once(tmp_path: Path) -> None:
    graph = graph_of(tmp_path)
    barrier = threading.Barrier(4)

    def work(_: int) -> Array:
        barrier.wait()
        return graph.forward([X])[0]

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_value_of_another_size_is_refused_where_views_look_at_it(tmp_path: Path) -> None:
    lines = (
        IMAGE,
        "Tensor.permute turn 1 1 x a dims=(0,2,3,1) $input=x",
        "torch.cumprod sum 1 1 a b dim=1 $input=a",
        "F.relu act 1 1 b y $input=b",
        "pnnx.Output out 1 0 y",
    )
    program = compiled(tmp_path, *lines)
    run = NativeRun(program, None, False, 1 << 30)
    (slot,) = program.exports
    run.values[program.plan.slots["x"]] = X[:1]
    with pytest.raises(LayerError, match=f"came where {X.size} elements were planned"):
        run._value(slot, program.arenas.take())
