import time
from dataclasses import replace
from typing import Any

from prometheus_client import CollectorRegistry

from service.histogram import REQUEST_SECONDS
from service.scheduling.job import CallStatus, Job, Timestamps
from service.telemetry.model_statistics import Duration, ModelStatistics
from service.telemetry.statistics import MAX_BATCH_SIZES, InferenceStatistics
from tests.service.telemetry.jobs import MS, START, TIMESTAMPS, make_job, make_trace


def counting(registry: CollectorRegistry, *records: Job[Any]) -> InferenceStatistics:
    statistics = InferenceStatistics(registry, clock=lambda: START + 30 * MS)
    for record in records:
        statistics.observe(record)
    return statistics


def observed(*records: Job[Any]) -> ModelStatistics:
    (statistics,) = counting(CollectorRegistry(), *records).read([("digits", "1")])
    return statistics


def histogram(name: str, *records: Job[Any], **labels: str) -> tuple[float | None, float | None]:
    """Return how many values a histogram of the model has counted, and their sum."""
    registry = CollectorRegistry()
    counting(registry, *records)
    labels = {"model": "digits", "version": "1", **labels}
    count, total = (registry.get_sample_value(f"{name}_{part}", labels) for part in ("count", "sum"))
    return count, None if total is None else round(total, 9)


def successes(statistics: InferenceStatistics, *versions: str) -> list[int]:
    return [one.success.count for one in statistics.read([("digits", version) for version in versions])]


def test_answered_request_counts_each_of_its_parts() -> None:
    counted = observed(make_job())
    assert counted.success == Duration(1, 20 * MS)
    assert counted.queue == Duration(1, 4 * MS)
    assert counted.compute_input == Duration(1, 2 * MS)
    assert counted.compute_infer == Duration(1, 10 * MS)
    assert counted.compute_output == Duration(1, 3 * MS)
    assert (counted.inference_count, counted.execution_count) == (1, 1)
    assert counted.fail == Duration(0, 0)


def test_histograms_count_the_same_in_seconds() -> None:
    records = make_job(), make_job(CallStatus.BACKEND)
    names = ("kuiper_request_seconds", "kuiper_queue_seconds", "kuiper_compute_seconds")
    assert [histogram(name, *records) for name in names] == [(1, 0.02), (1, 0.004), (1, 0.01)]


def test_requests_are_counted_between_the_bounds_of_their_times() -> None:
    counts = observed(make_job()).request_counts
    expected = [0] * (len(REQUEST_SECONDS) + 1)
    expected[REQUEST_SECONDS.index(0.025)] = 1
    assert counts == expected


def test_batch_is_one_run_of_several_requests() -> None:
    leader = make_job(batch_size=6, rows=1)
    follower = make_job(batch_size=6, rows=5, leads_run=False)
    counted = observed(leader, follower)
    assert counted.success.count == 2
    assert counted.inference_count == 6
    assert counted.execution_count == 1
    assert counted.compute_infer == Duration(2, 20 * MS)
    assert list(counted.batches) == [6]
    batch = counted.batches[6]
    assert batch.compute_input == Duration(1, 2 * MS)
    assert batch.compute_infer == Duration(1, 10 * MS)
    assert batch.compute_output == Duration(1, 3 * MS)
    assert histogram("kuiper_batch_size", leader, follower) == (1, 6)


def test_observed_runs_are_in_no_figure_of_those_that_serve() -> None:
    """Each part of an observed request takes what it takes because it was observed."""
    trace = make_trace()
    records = make_job(is_observed=True, trace=trace), make_job(trace=trace)
    counted, plain = observed(*records), observed(make_job(trace=trace))
    assert counted.observed == 1
    assert histogram("kuiper_observed_request_seconds", *records) == (1, 0.02)
    for figure in ("success", "queue", "compute_infer", "inference_count", "execution_count", "batches"):
        assert getattr(counted, figure) == getattr(plain, figure)
    assert histogram("kuiper_layer_seconds", *records, type="nn.Conv2d")[0] == 2
    failed = observed(make_job(CallStatus.BACKEND, is_observed=True))
    assert (failed.failures["BACKEND"], failed.fail.count, failed.execution_count) == (1, 1, 0)


def test_failures_count_by_reason_until_now() -> None:
    rejected = make_job(
        CallStatus.REJECTED, timestamps=Timestamps(START, START), batch_size=0, rows=0, leads_run=False
    )
    counted = observed(rejected, make_job(CallStatus.BACKEND, leads_run=False))
    assert counted.fail == Duration(2, 60 * MS)
    assert counted.failures == {"REJECTED": 1, "CANCELED": 0, "BACKEND": 1, "OTHER": 0}
    assert (counted.success, counted.inference_count, counted.execution_count) == (Duration(0, 0), 0, 0)
    assert counted.last_inference == 0


def test_run_counts_though_the_client_of_its_leader_left() -> None:
    left = make_job(CallStatus.CANCELED, timestamps=replace(TIMESTAMPS, encode_end=0), batch_size=2)
    counted = observed(left, make_job(batch_size=2, leads_run=False))
    assert (counted.execution_count, counted.inference_count) == (1, 1)
    assert counted.batches[2].compute_infer == Duration(1, 10 * MS)
    assert counted.batches[2].compute_output == Duration(0, 0)


def test_run_that_did_not_come_to_its_end_is_none() -> None:
    stopped = make_job(CallStatus.CANCELED, timestamps=replace(TIMESTAMPS, forward_end=0, encode_end=0))
    counted = observed(stopped)
    assert (counted.execution_count, counted.batches) == (0, {})


def test_last_inference_is_in_milliseconds_since_the_epoch() -> None:
    before = time.time() * 1000
    assert before - 1 <= observed(make_job()).last_inference <= time.time() * 1000


def test_layers_count_by_type_once_a_run() -> None:
    leader = make_job(trace=make_trace(), batch_size=2)
    follower = make_job(trace=make_trace(), batch_size=2, leads_run=False)
    layers = [
        histogram("kuiper_layer_seconds", leader, follower, type=kind) for kind in ("nn.Conv2d", "nn.ReLU")
    ]
    assert layers == [(2, 0.009), (1, 2e-5)]


def test_versions_are_counted_apart_and_unknown_ones_are_zero() -> None:
    statistics = counting(
        CollectorRegistry(), *(make_job(model="digits", version=version) for version in ("1", "2", "2"))
    )
    assert successes(statistics, "1", "2", "3") == [1, 2, 0]


def test_models_that_are_gone_are_forgotten_and_reloaded_ones_are_not() -> None:
    registry = CollectorRegistry()
    trace = make_trace()
    statistics = counting(
        registry, *(make_job(model="digits", version=version, trace=trace) for version in ("1", "2"))
    )
    statistics.keep({("digits", "2"), ("other", "1")})
    versions = {
        (sample.labels["model"], sample.labels["version"])
        for family in registry.collect()
        for sample in family.samples
    }
    assert versions == {("digits", "2"), ("other", "1")}
    statistics.observe(make_job(model="digits", version="2"))
    assert successes(statistics, "1", "2") == [0, 2]


def test_clients_cannot_make_batch_sizes_grow_for_ever() -> None:
    counted = observed(*(make_job(batch_size=size) for size in range(1, MAX_BATCH_SIZES + 10)))
    assert len(counted.batches) == MAX_BATCH_SIZES
    assert counted.execution_count == MAX_BATCH_SIZES + 9
