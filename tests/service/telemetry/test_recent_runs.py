import time
from typing import Any

from service.scheduling.job import CallStatus, Job
from service.telemetry.recent_runs import RecentRuns
from tests.service.telemetry.jobs import MS, make_job, make_trace, shifted


def traced(request_id: str, **changes: object) -> Job[Any]:
    return make_job(request_id=request_id, trace=make_trace(), **changes)  # type: ignore[arg-type]  # fields


def ids(runs: RecentRuns) -> list[str]:
    return [run.request_id for run in runs.newest_first()]


def test_traced_runs_are_kept_newest_first() -> None:
    runs = RecentRuns(10)
    for record in (traced("a"), make_job(request_id="untraced"), traced("b")):
        runs.observe(record)
    assert ids(runs) == ["b", "a"]
    assert runs.find("untraced") is None


def test_run_shows_all_but_its_data() -> None:
    runs = RecentRuns(1)
    runs.observe(
        traced("a", model="digits", version="2", status=CallStatus.OTHER, message="no", batch_size=4)
    )
    run = runs.find("a")
    assert run is not None
    assert (run.model, run.version, run.worker, run.error) == (
        "digits",
        "2",
        "worker-0",
        "no",
    )
    assert (run.status, run.batch_size, run.total_ms) == (CallStatus.OTHER, 4, 20.0)
    assert run.trace.layers == make_trace().layers


def test_oldest_run_makes_place() -> None:
    runs = RecentRuns(2)
    for request_id in "abc":
        runs.observe(traced(request_id))
    assert ids(runs) == ["c", "b"]


def test_large_models_make_place_by_their_layers() -> None:
    runs = RecentRuns(100, max_layers=7)  # a trace has three
    for request_id in "abc":
        runs.observe(traced(request_id))
    assert ids(runs) == ["c", "b"]
    single = RecentRuns(100, max_layers=2)
    for request_id in "ab":
        single.observe(traced(request_id))
    assert ids(single) == ["b"]


def test_newest_run_of_an_id_is_found() -> None:
    runs = RecentRuns(3)
    runs.observe(traced("a"))
    runs.observe(traced("a", timestamps=shifted(5), batch_size=9))
    run = runs.find("a")
    assert run is not None
    assert run.batch_size == 9


def test_capacity_of_zero_keeps_nothing() -> None:
    runs = RecentRuns(0)
    runs.observe(traced("a"))
    assert ids(runs) == []


def test_run_is_dated_by_the_epoch() -> None:
    runs = RecentRuns(1)
    received = time.perf_counter_ns()
    before = time.time_ns() / MS
    record = traced("a", timestamps=shifted((received - 5_000 * MS) / MS))
    runs.observe(record)
    assert abs(runs.newest_first()[0].received_ms - before) < 1000
