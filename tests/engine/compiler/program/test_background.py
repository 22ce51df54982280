"""Programs that are compiled beside runs: which, in which order, and that no run waits for them."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import RunStoppedError, RuntimeGraph, TensorSpec, TraceLevel
from engine.compiler.program import background, programs, verifier
from engine.compiler.program.background import compile_in_background, finish_background
from engine.compiler.program.hotness import LEAST_RUNS, MAX_SHAPES, PAYBACK_FACTOR, Hotness
from engine.compiler.program.native import NativeExecutor
from engine.compiler.program.program import Program
from engine.compiler.program.program_cache import MAX_PROGRAMS, InputKey, ProgramCache
from engine.dtypes import Array
from tests.engine.compiler.background import wait_until_idle
from tests.engine.compiler.plans import ROWS, linear, weights_of
from tests.engine.models import write_model

LINES = (ROWS, linear("l", "x", "y"), "pnnx.Output out 1 0 y")
FLOAT = np.dtype(np.float32)
SECONDS = 60.0


def open_graph(folder: Path) -> RuntimeGraph:
    text = "\n".join(LINES)
    graph = RuntimeGraph(write_model(folder, text, weights_of(text)), backend="native")
    graph.build()
    return graph


def rows(count: int) -> Array:
    return np.random.default_rng(count).standard_normal((count, 3, 4)).astype(np.float32)


def backends(graph: RuntimeGraph, x: Array) -> set[str]:
    trace = graph.run([x], trace=TraceLevel.ON, waits=False).trace
    assert trace is not None
    return {layer.backend for layer in trace.layers}


def shape(number: int) -> tuple[TensorSpec, ...]:
    return (TensorSpec((number, 3, 4), FLOAT),)


def key(number: int) -> InputKey:
    return (((number, 3, 4), FLOAT),)


class Work:
    """A backlog of a test."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = list(steps)

    def next(self) -> Callable[[], object] | None:
        return self.steps.pop(0) if self.steps else None


def settle() -> None:
    """Wait until the compiler's thread has nothing left to do."""
    done = threading.Event()
    work = Work(done.set)
    compile_in_background(work)
    assert done.wait(SECONDS)
    wait_until_idle()


def test_a_process_can_wait_for_all_work() -> None:
    gate = threading.Event()
    done: list[int] = []
    work = Work(gate.wait, lambda: done.append(1), lambda: done.append(2))
    compile_in_background(work)
    gate.set()
    finish_background()
    assert done == [1, 2]


@pytest.fixture
def is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling is worth it as soon as a shape came twice."""
    monkeypatch.setattr("engine.compiler.program.hotness.PAYBACK_FACTOR", float("inf"))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets verification go on, once set."""
    may_go_on = threading.Event()

    def verify_later(*arguments: object) -> verifier.Verdict:
        assert may_go_on.wait(SECONDS)
        return verifier.verify(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("engine.compiler.program.checker.verify", verify_later)
    yield may_go_on
    may_go_on.set()
    settle()


@pytest.mark.usefixtures("is_cheap")
def test_a_run_that_does_not_wait_is_numpys_until_the_program_is_verified(
    tmp_path: Path, gate: threading.Event
) -> None:
    graph = open_graph(tmp_path)
    for _ in range(LEAST_RUNS + 1):
        assert "native" not in backends(graph, rows(2))
    gate.set()
    settle()
    assert "native" in backends(graph, rows(2))
    assert graph.verification.checked == 1
    assert graph.compilation.compiled == 1


@pytest.mark.usefixtures("is_cheap")
def test_a_shape_that_came_once_is_not_compiled(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    for count in range(1, 20):
        assert "native" not in backends(graph, rows(count))
    settle()
    assert (graph.compilation.compiled, graph.compilation.waiting) == (0, 0)
    assert graph.compilation.not_compiled == 19


@pytest.mark.usefixtures("is_cheap")
def test_what_the_numpy_layers_do_not_run_on_is_not_compiled(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    for _ in range(3):
        with pytest.raises(RunStoppedError):
            graph.run([rows(2)], waits=False, stop=lambda: "late")
    settle()
    assert "native" in backends(graph, rows(2)), (
        "a run that was stopped in numpy needs the program all the more"
    )


@pytest.mark.usefixtures("is_cheap")
def test_responses_are_the_same_before_and_after(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    results = []
    for _ in range(4):
        results.append(graph.run([rows(3)], waits=False).outputs[0])
        settle()
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, atol=1e-6)


def test_a_shape_is_hot_once_numpy_took_long_enough() -> None:
    hotness = Hotness()
    assert not hotness.note(shape(1), 1.0, 0.5), "it came once"
    assert hotness.note(shape(1), 1.0, 0.5)
    assert not hotness.note(shape(2), 0.1 / PAYBACK_FACTOR, 0.5)
    assert not hotness.note(shape(2), 0.1 / PAYBACK_FACTOR, 0.5)
    assert hotness.note(shape(2), 0.4 / PAYBACK_FACTOR, 0.5)
    assert hotness.hottest(0.5) == shape(1), "numpy took longest on it"
    assert hotness.count(0.5) == (2, 0)
    assert hotness.count(2.0 * PAYBACK_FACTOR) == (1, 1)
    hotness.forget(shape(1))
    assert hotness.hottest(0.5) == shape(2)
    assert hotness.hottest(100.0) is None


def test_few_shapes_are_remembered() -> None:
    hotness = Hotness()
    for number in range(3 * MAX_SHAPES):
        hotness.note(shape(number), 1.0, 0.5)
    assert hotness.count(0.5) == (0, MAX_SHAPES)


def test_graphs_share_the_compiler_round_robin() -> None:
    """Of two graphs with work, the one that less time was spent on comes first."""
    order: list[str] = []
    may_begin, begun = threading.Event(), threading.Event()

    def begin() -> None:
        begun.set()
        assert may_begin.wait(SECONDS)

    def take_time() -> None:
        order.append("greedy")
        threading.Event().wait(0.02)

    greedy = Work(begin, take_time, take_time, take_time)
    modest = Work(lambda: order.append("modest"))
    compile_in_background(greedy)
    assert begun.wait(SECONDS)
    compile_in_background(modest)
    may_begin.set()
    settle()
    assert sorted(order) == ["greedy"] * 3 + ["modest"]
    assert order.index("modest") <= 1


def test_what_fails_beside_the_runs_is_logged_and_the_next_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fail() -> None:
        raise LookupError("planted")

    def lack_memory() -> None:
        raise MemoryError("planted")

    with caplog.at_level(logging.WARNING):
        work = Work(fail, lack_memory, done.set)
        compile_in_background(work)
        settle()
    assert done.is_set()
    levels = [record.levelname for record in caplog.records if record.name == background.__name__]
    assert levels == ["ERROR", "WARNING"]


def test_programs_in_use_are_not_displaced() -> None:
    kept = ProgramCache()
    for number in range(MAX_PROGRAMS):
        assert kept.has_place
        kept.add(key(number), None)
    for _ in range(10):
        for number in range(2 * MAX_PROGRAMS):
            kept.look_up(key(number))
    is_full = not kept.has_place
    assert is_full
    for _ in range(5):
        for number in range(1, MAX_PROGRAMS):
            kept.look_up(key(number))
    assert kept.has_place, "nothing asked for the first one any more"
    kept.add(key(MAX_PROGRAMS), None)
    assert len(kept) == MAX_PROGRAMS
    assert kept.look_up(key(0)) == (False, None)


def test_programs_are_kept_by_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.compiler.program.program_cache.own_bytes", lambda *_: 10 << 20)
    kept = ProgramCache()
    for number in range(8):
        kept.add(key(number), object())  # type: ignore[arg-type]  # it is only kept
    assert len(kept) == 3


@pytest.mark.usefixtures("is_cheap")
def test_programs_of_later_shapes_displace_none_that_were_prepared(tmp_path: Path) -> None:
    text = "\n".join(LINES)
    graph = RuntimeGraph(write_model(tmp_path, text, weights_of(text)), backend="native", programs_kept=1)
    graph.build()
    graph.prepare(shape(1))
    for count in range(2, 6):
        for _ in range(LEAST_RUNS):
            backends(graph, rows(count))
    settle()
    assert graph.is_compiled(shape(1))
    assert all(graph.is_compiled(shape(count)) for count in range(2, 6))


def test_memory_that_is_too_short_to_choose_stops_no_later_work(caplog: pytest.LogCaptureFixture) -> None:
    class Short(Work):
        def next(self) -> Callable[[], object] | None:
            if not self.steps:
                return None
            raise self.steps.pop()  # type: ignore[misc]  # what a test lets it raise

    settle()
    short = Short(MemoryError)
    compile_in_background(short)
    background._thread().submit(lambda: None).result(SECONDS)
    settle()
    assert not short.steps
    assert "out of memory" in caplog.text


@pytest.mark.usefixtures("is_cheap")
def test_programs_are_looked_up_and_kept_under_one_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks: list[threading.Lock] = []
    unlocked: list[str] = []

    class Watched(ProgramCache):
        def add(self, *arguments: object) -> None:
            unlocked.extend([] if locks[0].locked() else ["add"])
            super().add(*arguments)  # type: ignore[arg-type]

        def look_up(self, name: InputKey) -> tuple[bool, Program | None]:
            unlocked.extend([] if locks[0].locked() else ["look_up"])
            return super().look_up(name)

    monkeypatch.setattr(programs, "ProgramCache", Watched)
    graph = open_graph(tmp_path)
    executor = graph._executor
    assert isinstance(executor, NativeExecutor)
    locks.append(executor._programs._lock)
    for _ in range(LEAST_RUNS):
        backends(graph, rows(2))
    settle()
    assert graph.is_compiled(shape(2))
    assert unlocked == []
