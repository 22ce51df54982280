from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine import BuildError, BuildTimeoutError, LayerError, RuntimeGraph, TensorSpec
from engine.model import build_clock
from engine.model.build_clock import BuildClock
from tests.engine.models import write_model

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
LINES = "pnnx.Input in 0 1 x #x=(3,4)f32\nF.relu relu 1 1 x y\nF.silu silu 1 1 y z\npnnx.Output out 1 0 z"
SPECS = [TensorSpec(X.shape, X.dtype)]

Advance = Callable[[float], None]


@pytest.fixture
def advance(monkeypatch: pytest.MonkeyPatch) -> Advance:
    """Return what sets how far the clock goes on each time that it is looked at."""
    now, step = [0.0], [0.0]

    def monotonic() -> float:
        now[0] += step[0]
        return now[0]

    def set_step(seconds: float) -> None:
        step[0] = seconds

    monkeypatch.setattr(build_clock, "monotonic", monotonic)
    return set_step


def open_graph(folder: Path, seconds: float | None, backend: str = "native") -> RuntimeGraph:
    return RuntimeGraph(write_model(folder, LINES), backend=backend, max_build_seconds=seconds)


def test_a_clock_without_a_limit_never_gives_up(advance: Advance) -> None:
    advance(1e9)
    clock = BuildClock(None, "building")
    for _ in range(3):
        clock.check("nn.ReLU", "relu")


def test_building_is_aborted_at_the_operator_that_it_has_come_to(tmp_path: Path, advance: Advance) -> None:
    advance(1.0)
    with pytest.raises(BuildTimeoutError) as caught:
        open_graph(tmp_path, 2.0).build()
    assert str(caught.value) == (
        "building timed out at F.silu silu: it takes longer than the 2 seconds of max_build_seconds"
    )


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_planning_is_aborted_at_the_operator_that_it_has_come_to(
    tmp_path: Path, advance: Advance, backend: str
) -> None:
    graph = open_graph(tmp_path, 2.0, backend)
    graph.build()
    advance(1.0)
    with pytest.raises(LayerError, match=r"^planning timed out at F.silu silu: .* max_build_seconds$"):
        graph.forward([X])
    advance(0.0)  # it was for the time, and is tried again
    assert len(graph.forward([X])) == 1


@pytest.mark.plants_a_mistake
def test_compiling_is_aborted_with_an_error_and_runs_use_the_numpy_layers(
    tmp_path: Path, advance: Advance
) -> None:
    graph = open_graph(tmp_path, 2.0)
    graph.build()
    graph.plan(SPECS)
    advance(1.0)
    for _ in range(2):  # what timed out is not tried again
        with pytest.raises(BuildTimeoutError, match=r"^compiling timed out at F.silu silu"):
            graph.prepare(SPECS)
    advance(0.0)
    (refusal,) = graph.verification.refused
    assert refusal.reason.startswith("the compiler failed: compiling timed out at F.silu silu")
    (output,) = graph.forward([X])
    np.testing.assert_allclose(output, np.maximum(X, 0) / (1 + np.exp(-np.maximum(X, 0))), rtol=1e-6)


@pytest.mark.plants_a_mistake
def test_a_run_on_new_shapes_waits_no_longer_than_that_for_the_compiler(
    tmp_path: Path, advance: Advance
) -> None:
    graph = open_graph(tmp_path, 2.0)
    graph.build()
    graph.plan(SPECS)
    advance(1.0)
    assert len(graph.forward([X])) == 1
    assert len(graph.verification.refused) == 1


def test_time_enough_changes_nothing(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, 3600.0)
    graph.build()
    assert graph.prepare(SPECS) is not None
    assert graph.verification.refused == ()


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_limit_that_is_no_time_is_refused(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(BuildError, match=r"^max_build_seconds: .*; expected a number above 0, or None$"):
        open_graph(tmp_path, seconds)
