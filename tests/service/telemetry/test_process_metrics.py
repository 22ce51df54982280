"""What processes count apart, and what any of them shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from prometheus_client import multiprocess, values
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from service.telemetry.metrics import Metrics, Snapshot
from service.telemetry.request_log import RequestLog
from service.telemetry.statistics import InferenceStatistics
from tests.service.telemetry.jobs import make_job, make_trace, shifted

NOTHING = cast(Snapshot, type("Nothing", (), {"identities": frozenset()}))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that the processes share."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setattr(values, "ValueClass", values.ValueClass)
    return tmp_path


class Counted:
    """A collector of a counter and a gauge."""

    def __init__(self) -> None:
        self.count = self.level = 0
        self.has_level = True

    def collect(self, snapshot: object) -> Iterator[Metric]:
        del snapshot
        counter = CounterMetricFamily("made", "things", labels=("kind",))
        counter.add_metric(("a",), self.count)
        yield counter
        level = GaugeMetricFamily("level", "of something", labels=("of",))
        if self.has_level:
            level.add_metric(("it",), self.level)
        yield level


class Process:
    """One of several, all of which are this one here: whichever acts is the one whose files are written."""

    def __init__(self, number: int) -> None:
        self.state = Counted()
        self.metrics = Metrics([self.state.collect], number)
        self.values = values.ValueClass
        self.statistics = InferenceStatistics(self.metrics.registry, self.metrics.source, clock=lambda: 10**9)

    def act(self) -> "Process":
        values.ValueClass = self.values
        return self

    def read(self) -> dict[str, float]:
        text, _ = self.act().metrics.render(NOTHING)
        return {
            sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
            if sample.name in ("made_total", "level")
        }


def value(source: Collector, name: str, labels: dict[str, str]) -> float:
    """Return the value of a series."""
    (found,) = (
        sample.value
        for family in source.collect()
        for sample in family.samples
        if (sample.name, sample.labels) == (name, labels)
    )
    return found


def test_statistics_are_those_of_one_process_that_did_all() -> None:
    processes = [Process(0), Process(1)]
    alone_metrics = Metrics([])
    values_alone = values.MutexValue
    alone = InferenceStatistics(alone_metrics.registry, clock=lambda: 10**9)
    for number in range(20):
        trace = make_trace() if number % 4 == 0 else None
        one = make_job(batch_size=1 + number % 3, rows=1, timestamps=shifted(number), trace=trace)
        values.ValueClass = values_alone
        alone.observe(one)
        processes[number % 2].act().statistics.observe(one)
        if number == 9:  # another process takes over the number of one that was killed
            processes[1] = Process(1)
    (expected,) = alone.read([("digits", "1")])
    for process in processes:
        (found,) = process.act().statistics.read([("digits", "1")])
        for name in ("success", "queue", "compute_infer", "failures", "batches", "request_counts"):
            assert getattr(found, name) == getattr(expected, name), name
        assert (found.execution_count, found.inference_count) == (20, 20)
        name, labels = "kuiper_layer_seconds_count", {"model": "digits", "version": "1", "type": "nn.Conv2d"}
        assert value(process.metrics.source, name, labels) == 10


def test_series_of_models_that_are_gone_vanish() -> None:
    process = Process(0)
    process.statistics.observe(make_job())
    text, _ = process.metrics.render(NOTHING)
    assert "digits" not in text.decode()
    assert process.statistics.read([("digits", "1")])[0].success.count == 1, "it may be loaded again"


def test_http_requests_are_added_up() -> None:
    first, second = Process(0), Process(2)
    labels = {"http_request_method": "POST", "http_route": "/infer", "http_response_status_code": "200"}
    logs = [(process, RequestLog(process.metrics.registry)) for process in (first, second)]
    for process, log in logs * 3:
        process.act()
        log._http.labels(*labels.values()).observe(0.25)
    for process in (first, second):
        assert value(process.metrics.source, "http_server_request_duration_seconds_count", labels) == 6


def test_counters_are_added_up_and_gauges_distinguished(folder: Path) -> None:
    first, second = Process(0), Process(1)
    first.state.count, first.state.level, second.state.count, second.state.level = 3, 30, 4, 40
    second.act().metrics.publish(NOTHING)
    assert first.read() == {"made_total a": 7, "level it 0": 30, "level it 1": 40}
    first.state.count += 1
    first.state.has_level = False
    assert first.read() == {"made_total a": 8, "level it 1": 40}, "a series that has ended is not shown"
    multiprocess.mark_process_dead(1, str(folder))  # type: ignore[no-untyped-call]
    first.state.has_level = True
    assert first.read() == {"made_total a": 8, "level it 0": 30}, (
        "of a process that is gone only counts are left"
    )
    successor = Process(1)
    assert first.read()["made_total a"] == 8
    successor.state.count = 2
    assert successor.read() == {"made_total a": 10, "level it 0": 30, "level it 1": 0}
