from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import RunTrace
from service.scheduling.job import Job, Timestamps
from service.telemetry.chrome_trace import chrome_trace
from service.telemetry.recent_runs import RecentRun, RecentRuns
from tests.service.telemetry.jobs import MS, TIMESTAMPS, make_job, make_layer, make_trace, shifted
from tests.service.telemetry.trace_events import check_trace_events

Event = dict[str, Any]


def kept(records: Iterable[Job[Any]]) -> Sequence[RecentRun]:
    runs = RecentRuns(1000)
    for record in records:
        runs.observe(record)
    return runs.newest_first()


def drawn(*records: Job[Any]) -> list[Event]:
    trace = orjson.loads(orjson.dumps(chrome_trace(kept(records))))
    check_trace_events(trace)
    events: list[Event] = trace["traceEvents"]
    return events


def slices(events: list[Event], category: str | None = None) -> list[Event]:
    return [event for event in events if event["ph"] == "X" and category in (None, event["cat"])]


def test_call_is_drawn_from_its_queue_to_its_encoding() -> None:
    events = drawn(make_job(trace=make_trace()))
    placed = [(event["name"], event["ts"], event["dur"]) for event in slices(events)]
    assert placed == [
        ("decode", 4_000, 2_000),
        ("forward", 7_000, 10_000),
        ("nn.Conv2d", 7_100, 4_000),
        ("nn.ReLU", 11_200, 20),
        ("nn.Conv2d", 11_300, 5_000),
        ("encode", 17_000, 3_000),
    ]
    waits = [(event["ph"], event["name"], event["ts"]) for event in events if event["ph"] in "be"]
    assert waits == [
        ("b", "request", 0),
        ("b", "queue", 1_000),
        ("e", "queue", 4_000),
        ("b", "wait for batch", 6_000),
        ("e", "wait for batch", 7_000),
        ("e", "request", 20_000),
    ]


def test_layers_are_placed_where_the_run_began() -> None:
    trace = make_trace(TIMESTAMPS.forward_start + MS // 2)
    assert slices(drawn(make_job(trace=trace)), "layer")[0]["ts"] == 7_600


def test_layers_show_shapes_and_speed() -> None:
    layer = make_layer(0, "nn.Conv2d", 0.0, 2.0, multiply_adds=5_000, bytes_moved=3_000)
    (event,) = slices(drawn(make_job(trace=RunTrace(2.0, (layer,)))), "layer")
    assert event["args"] == {
        "name": "layer_0",
        "inputs": ["(1,3)f32"],
        "outputs": ["(1,4)f32"],
        "GFLOP/s": 5.0,
        "GB/s": 1.5,
        "multiply_adds": 5_000,
        "bytes": 3_000,
        "backend": "numpy",
        "fused": "",
        "precision": "f32",
    }


def test_layer_that_took_no_time_has_no_speed() -> None:
    layer = make_layer(0, "nn.ReLU", 0.0, 0.0)
    (event,) = slices(drawn(make_job(trace=RunTrace(0.0, (layer,)))), "layer")
    assert event["args"]["GFLOP/s"] == 0.0


def test_every_worker_has_a_named_row() -> None:
    records = [make_job(trace=make_trace(), worker=f"worker-{n}") for n in (1, 0)]
    events = drawn(*records)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {1: "worker-0", 2: "worker-1"}
    assert {event["tid"] for event in slices(events)} == {1, 2}
    assert len(slices(events, "layer")) == 6


def test_run_of_a_batch_is_drawn_once() -> None:
    trace = make_trace()
    later = replace(
        TIMESTAMPS,
        forward_start=TIMESTAMPS.forward_start + 900,
        forward_end=TIMESTAMPS.forward_end + 400,
        encode_end=TIMESTAMPS.encode_end + 2 * MS,
    )
    records = [
        make_job(trace=trace, batch_size=2, timestamps=timestamps) for timestamps in (TIMESTAMPS, later)
    ]
    events = drawn(*records)
    assert len(slices(events, "forward")) == 1
    assert len(slices(events, "layer")) == 3
    encodings = [(event["ts"], event["dur"]) for event in slices(events, "encode")]
    assert encodings == [(17_000, 3_000), (20_000, 2_000)]
    # who decoded a call of a batch is not known
    assert not slices(events, "decode")
    assert len([event for event in events if event["name"] == "decode"]) == 4


def test_waiting_requests_overlap_with_ids_of_their_own() -> None:
    events = drawn(*(make_job(trace=make_trace(), timestamps=shifted(n)) for n in range(3)))
    assert {event["id"] for event in events if event["ph"] == "b"} == {"0", "1", "2"}


def test_run_without_an_response_has_no_encoding() -> None:
    events = drawn(make_job(trace=make_trace(), timestamps=replace(TIMESTAMPS, encode_end=0)))
    assert not slices(events, "encode")
    assert len(slices(events, "layer")) == 3


def test_nothing_is_an_empty_trace() -> None:
    assert chrome_trace([])["traceEvents"] == []


@st.composite
def many_records(draw: st.DrawFn) -> list[Job[Any]]:
    """Calls at any times, more than a worker could do at once."""
    records = []
    for number in range(draw(st.integers(1, 6))):
        moments = sorted(draw(st.lists(st.integers(1, 10_000), min_size=7, max_size=7)))
        timestamps = Timestamps(*moments)
        length = timestamps.forward_end - timestamps.forward_start
        edges = sorted(draw(st.lists(st.integers(0, length), min_size=4, max_size=4)))
        layers = tuple(
            make_layer(index, "nn.ReLU", start / 1000, (end - start) / 1000)
            for index, (start, end) in enumerate(((edges[0], edges[1]), (edges[2], edges[3])))
        )
        record = make_job(
            request_id=str(number),
            timestamps=timestamps,
            worker=f"worker-{draw(st.integers(0, 2))}",
            batch_size=draw(st.integers(1, 2)),
            trace=RunTrace(length / 1000, layers),
        )
        records.append(record)
    return records


@settings(max_examples=100, deadline=None)
@given(many_records())
def test_whatever_comes_slices_of_a_row_nest_or_follow(records: list[Job[Any]]) -> None:
    check_trace_events(chrome_trace(kept(records)))
