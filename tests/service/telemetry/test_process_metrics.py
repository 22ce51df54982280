"""What processes count apart, and what any of them shows."""

import os
from collections.abc import Iterator, Sequence
from time import monotonic

import pytest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from service.processes.counter_memory import CounterMemory, make_counter_memory
from service.telemetry.http_durations import HttpDurations
from service.telemetry.metrics import Metrics, processes
from service.telemetry.metrics.processes import ProcessMetrics
from service.telemetry.process_statistics import Counters, ProcessHttpDurations, ProcessStatistics
from service.telemetry.statistics import InferenceStatistics
from tests.service.telemetry.records import make_record, make_trace, shifted


@pytest.fixture
def descriptors() -> Iterator[list[int]]:
    made = [make_counter_memory() for _ in range(3)]
    yield made
    for descriptor in made:
        os.close(descriptor)


def counters(descriptors: Sequence[int], number: int) -> Counters:
    """Return the memories as the process of a slot maps them."""
    return Counters([CounterMemory(descriptor) for descriptor in descriptors], number)


def test_statistics_are_those_of_one_process_that_did_all(descriptors: list[int]) -> None:
    alone = InferenceStatistics(clock=lambda: 10**9)
    apart = [ProcessStatistics(counters(descriptors, number), clock=lambda: 10**9) for number in (0, 1)]
    for number in range(20):
        trace = make_trace() if number % 4 == 0 else None
        one = make_record(batch_size=1 + number % 3, items=1, timestamps=shifted(number), trace=trace)
        alone.observe(one)
        apart[number % 2].observe(one)
        if number == 9:  # another process takes over the slot of one that was killed
            apart[1] = ProcessStatistics(counters(descriptors, 1), clock=lambda: 10**9)
    expected = alone.of("digits", "1")
    for process in apart:
        found = process.of("digits", "1")
        for name in (
            "success",
            "queue",
            "compute_infer",
            "failures",
            "batches",
            "execution_count",
            "inference_count",
        ):
            assert getattr(found, name) == getattr(expected, name), name
        assert found.request_seconds.numbers() == pytest.approx(expected.request_seconds.numbers())
        assert {kind: one.counts() for kind, one in found.layer_seconds.items()} == {
            kind: one.counts() for kind, one in expected.layer_seconds.items()
        }


def test_http_requests_are_added_up(descriptors: list[int]) -> None:
    alone = HttpDurations()
    apart = [ProcessHttpDurations(counters(descriptors, number)) for number in (0, 2)]
    for number in range(10):
        for durations in (alone, apart[number % 2]):
            durations.observe("POST", "/infer", 200 + number % 3, 0.25)
    for process in apart:
        assert {endpoint: one.numbers() for endpoint, one in process.series()} == {
            endpoint: one.numbers() for endpoint, one in alone.series()
        }


class Counted:
    """A collector of a counter and a gauge."""

    def __init__(self) -> None:
        self.count = self.level = 0

    def collect(self, snapshot: object) -> Iterator[Metric]:
        del snapshot
        counter = CounterMetricFamily("made", "things", labels=("kind",))
        counter.add_metric(("a",), self.count)
        yield counter
        yield GaugeMetricFamily("level", "of something", value=self.level)


def read(process: ProcessMetrics) -> dict[str, float]:
    text, _ = process.render(None)  # type: ignore[arg-type]  # no collector here looks at it
    return {
        sample.name + "".join(f" {value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if sample.name in ("made_total", "level")
    }


def test_counters_are_added_up_and_gauges_told_apart(descriptors: list[int]) -> None:
    sources = [Counted(), Counted()]
    apart = [
        ProcessMetrics(Metrics([source]), counters(descriptors, number))
        for number, source in enumerate(sources)
    ]
    sources[0].count, sources[0].level, sources[1].count, sources[1].level = 3, 30, 4, 40
    apart[1].publish(None)  # type: ignore[arg-type]
    assert read(apart[0]) == {"made_total a": 7, "level 0": 30, "level 1": 40}
    later = monotonic() + 60
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "monotonic", lambda: later)
        assert read(apart[0]) == {"made_total a": 7, "level 0": 30}, "gauges of a killed process expire"
    apart[0].publish(None)  # type: ignore[arg-type]
    apart[1].publish(None, is_last=True)  # type: ignore[arg-type]
    assert read(apart[0]) == {"made_total a": 7, "level 0": 30}, (
        "of a process that is gone only counts are left"
    )
    successor = Counted()
    apart[1] = ProcessMetrics(Metrics([successor]), counters(descriptors, 1))
    assert read(apart[0])["made_total a"] == 7
    successor.count = 2
    assert read(apart[1]) == {"made_total a": 9, "level 0": 30, "level 1": 0}
