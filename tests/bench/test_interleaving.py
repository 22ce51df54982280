import os
import sys

import pytest

from engine.run.trace import LayerTrace, OperandTrace, RunTrace
from tests.bench.interleaving import FEWEST_ROUNDS, interleave
from tests.bench.layers import layer_rows
from tests.bench.loaded import MAX_CALLS, timed_calls
from tests.bench.worker import Worker, WorkerError, in_own_process


def held(thing: object) -> object:
    return thing


def doubled(number: int) -> int:
    return 2 * number


def plus(number: int, other: int) -> int:
    return number + other


def refused(number: int) -> int:
    raise ValueError(f"not {number}\nsecond line")


def loaded_modules() -> list[str]:
    import tests.bench.__main__  # with all that it needs
    import tests.bench.loaded  # noqa: F401

    return list(sys.modules)


def ended(number: int) -> int:
    os._exit(number)


def test_each_round_samples_every_runtime_in_changing_order() -> None:
    order: list[str] = []

    def runtime(name: str, seconds: list[float]) -> list[float]:
        order.append(name)
        return [seconds.pop(0)] * 2

    times = {"a": [1.0, 2.0, 9.0, 2.0, 2.0], "b": [5.0] * 5, "c": [7.0] * 5}
    samplers = {name: (lambda name=name: runtime(name, times[name])) for name in times}
    medians = interleave(samplers, 5, {}, pause=0)
    assert medians == {"a": [1.0, 2.0, 9.0, 2.0, 2.0], "b": [5.0] * 5, "c": [7.0] * 5}
    rounds = [order[start : start + 3] for start in range(0, 15, 3)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1


def test_runtime_that_fails_is_left_out_from_then_on() -> None:
    calls: list[str] = []

    def fail() -> list[float]:
        calls.append("fail")
        raise WorkerError("gone")

    failures: dict[str, str] = {}
    medians = interleave({"good": lambda: [1.0], "bad": fail}, 4, failures, pause=0)
    assert medians == {"good": [1.0] * 4}
    assert failures == {"bad": "gone"}
    assert calls == ["fail"]


def test_comparison_ends_early_when_time_is_up() -> None:
    times = interleave({"slow": lambda: [1.0]}, 1000, {}, pause=0, max_seconds=0)
    assert len(times["slow"]) == FEWEST_ROUNDS


def test_sample_calls_untimed_first_and_bounds_its_calls() -> None:
    calls: list[int] = []
    times = timed_calls(lambda: calls.append(1))
    assert len(times) <= MAX_CALLS
    assert len(calls) > len(times) >= 1


def test_worker_responses_for_what_it_holds() -> None:
    with Worker(doubled, 21) as worker:
        assert worker.ask(held) == 42
        assert worker.ask(plus, 1) == 43
        with pytest.raises(WorkerError, match=r"^ValueError: not 42$"):
            worker.ask(refused)
        assert worker.ask(held) == 42


def test_worker_that_cannot_start_says_why() -> None:
    with pytest.raises(WorkerError, match="ValueError: not 3"):
        in_own_process(refused, 3)


def test_worker_that_dies_is_distinguished() -> None:
    with pytest.raises(WorkerError, match="exit code 7"):
        in_own_process(ended, 7)


def test_runtimes_do_not_load_other_runtimes_by_themselves() -> None:
    modules = in_own_process(loaded_modules)
    assert not {"torch", "onnxruntime", "openvino", "ncnn", "matplotlib"} & set(modules)


def layer(name: str, microseconds: float, multiply_adds: int, fused_into: str | None = None) -> LayerTrace:
    output = OperandTrace("x", (1, 2), "f32")
    return LayerTrace(
        0,
        name,
        "nn.Linear",
        (),
        (output,),
        0.0,
        microseconds,
        0.0,
        multiply_adds,
        0,
        "native",
        (),
        fused_into,
    )


def test_operations_count_where_they_are_done() -> None:
    traces = [
        RunTrace(0.0, (layer("a", time, 1000), layer("b", 0.0, 500, "a"), layer("c", 1.0, 0)))
        for time in (1.0, 3.0, 2.0)
    ]
    first, last = layer_rows(traces, peak=3.0)
    assert first.name == "a"
    assert first.seconds == pytest.approx(2e-6)
    assert first.gflops == pytest.approx(1.5)
    assert first.share == pytest.approx(0.5)
    assert (last.name, last.gflops) == ("c", 0.0)
