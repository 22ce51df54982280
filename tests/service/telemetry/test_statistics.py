import time
from dataclasses import replace

from service.scheduling.record import CallRecord, CallStatus, Timestamps
from service.telemetry.statistics import MAX_BATCH_SIZES, Duration, InferenceStatistics, ModelStatistics
from tests.service.telemetry.records import MS, START, TIMESTAMPS, make_record, make_trace


def observed(*records: CallRecord) -> ModelStatistics:
    statistics = InferenceStatistics(clock=lambda: START + 30 * MS)
    for record in records:
        statistics.observe(record)
    return statistics.of("digits", "1")


def test_answered_request_counts_each_of_its_parts() -> None:
    counted = observed(make_record())
    assert counted.success == Duration(1, 20 * MS)
    assert counted.queue == Duration(1, 4 * MS)
    assert counted.compute_input == Duration(1, 2 * MS)
    assert counted.compute_infer == Duration(1, 10 * MS)
    assert counted.compute_output == Duration(1, 3 * MS)
    assert (counted.inference_count, counted.execution_count) == (1, 1)
    nothing = (counted.fail, counted.cache_hit, counted.cache_miss)
    assert nothing == (Duration(), Duration(), Duration())


def test_histograms_count_the_same_in_seconds() -> None:
    counted = observed(make_record(), make_record(CallStatus.BACKEND))
    histograms = (counted.request_seconds, counted.queue_seconds, counted.compute_seconds)
    assert [histogram.count for histogram in histograms] == [1, 1, 1]
    assert [round(histogram.total, 9) for histogram in histograms] == [0.02, 0.004, 0.01]


def test_batch_is_one_run_of_several_requests() -> None:
    leader = make_record(batch_size=6, items=1)
    follower = make_record(batch_size=6, items=5, leads_run=False)
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
    assert (counted.batch_sizes.count, counted.batch_sizes.total) == (1, 6)


def test_observed_runs_are_in_no_figure_of_those_that_serve() -> None:
    """Each part of an observed request takes what it takes because it was observed."""
    trace = make_trace()
    counted = observed(make_record(is_observed=True, trace=trace), make_record(trace=trace))
    plain = observed(make_record(trace=trace))
    assert (counted.observed_seconds.count, round(counted.observed_seconds.total, 9)) == (1, 0.02)
    for figure in ("success", "queue", "compute_infer", "inference_count", "execution_count", "batches"):
        assert getattr(counted, figure) == getattr(plain, figure)
    for figure in ("request_seconds", "queue_seconds", "compute_seconds", "batch_sizes"):
        assert getattr(counted, figure).count == 1
    assert counted.layer_seconds["nn.Conv2d"].count == 2
    failed = observed(make_record(CallStatus.BACKEND, is_observed=True))
    assert (failed.failures[CallStatus.BACKEND], failed.fail.count, failed.execution_count) == (1, 1, 0)


def test_failures_count_by_reason_until_now() -> None:
    rejected = make_record(
        CallStatus.REJECTED, timestamps=Timestamps(START, START), batch_size=0, items=0, leads_run=False
    )
    counted = observed(rejected, make_record(CallStatus.BACKEND, leads_run=False))
    assert counted.fail == Duration(2, 60 * MS)
    assert counted.failures == {
        CallStatus.REJECTED: 1,
        CallStatus.CANCELED: 0,
        CallStatus.BACKEND: 1,
        CallStatus.OTHER: 0,
    }
    assert (counted.success, counted.inference_count, counted.execution_count) == (Duration(), 0, 0)
    assert counted.last_inference == 0


def test_run_counts_though_the_client_of_its_leader_left() -> None:
    left = make_record(CallStatus.CANCELED, timestamps=replace(TIMESTAMPS, encode_end=0), batch_size=2)
    counted = observed(left, make_record(batch_size=2, leads_run=False))
    assert (counted.execution_count, counted.inference_count) == (1, 1)
    assert counted.batches[2].compute_infer == Duration(1, 10 * MS)
    assert counted.batches[2].compute_output == Duration()


def test_run_that_did_not_come_to_its_end_is_none() -> None:
    stopped = make_record(CallStatus.CANCELED, timestamps=replace(TIMESTAMPS, forward_end=0, encode_end=0))
    counted = observed(stopped)
    assert (counted.execution_count, counted.batches) == (0, {})


def test_last_inference_is_in_milliseconds_since_the_epoch() -> None:
    before = time.time() * 1000
    assert before - 1 <= observed(make_record()).last_inference <= time.time() * 1000


def test_layers_count_by_type_once_a_run() -> None:
    leader = make_record(trace=make_trace(), batch_size=2)
    follower = make_record(trace=make_trace(), batch_size=2, leads_run=False)
    layers = observed(leader, follower).layer_seconds
    assert {name: layer.count for name, layer in layers.items()} == {"nn.Conv2d": 2, "nn.ReLU": 1}
    assert round(layers["nn.Conv2d"].total, 9) == 0.009


def test_versions_are_counted_apart_and_unknown_ones_are_zero() -> None:
    statistics = InferenceStatistics()
    for version in ("1", "2", "2"):
        statistics.observe(make_record(model="digits", version=version))
    counts = [statistics.of("digits", version).success.count for version in ("1", "2", "3")]
    assert counts == [1, 2, 0]
    assert len(statistics) == 2


def test_models_that_are_gone_are_forgotten_and_reloaded_ones_are_not() -> None:
    statistics = InferenceStatistics()
    for version in ("1", "2"):
        statistics.observe(make_record(model="digits", version=version))
    statistics.keep({("digits", "2"), ("other", "1")})
    statistics.observe(make_record(model="digits", version="2"))
    assert [statistics.of("digits", version).success.count for version in ("1", "2")] == [0, 2]
    assert len(statistics) == 1


def test_clients_cannot_make_batch_sizes_grow_for_ever() -> None:
    counted = observed(*(make_record(batch_size=size) for size in range(1, MAX_BATCH_SIZES + 10)))
    assert len(counted.batches) == MAX_BATCH_SIZES
    assert counted.execution_count == MAX_BATCH_SIZES + 9
