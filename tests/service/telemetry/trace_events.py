"""The rules of the Trace Event Format, as far as the events that are used here."""

from collections import defaultdict
from typing import Any

Event = dict[str, Any]


def check_trace_events(trace: dict[str, Any]) -> None:
    """Check a whole trace: fields, rows that nest, asynchronous events that open and close in order."""
    assert trace["displayTimeUnit"] in ("ms", "ns")
    rows: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    threads: dict[tuple[str, str], list[Event]] = defaultdict(list)
    named = set()
    for event in trace["traceEvents"]:
        assert isinstance(event["name"], str)
        assert event["name"]
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            named.add(event["tid"])
            continue
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            start = _ns(event["ts"])
            rows[event["pid"], event["tid"]].append((start, start + _ns(event["dur"])))
        else:
            assert event["ph"] in ("b", "e")
            threads[event["cat"], event["id"]].append(event)
    assert {row for _, row in rows} <= named
    for slices in rows.values():
        _check_nesting(slices)
    for events in threads.values():
        _check_pairs(events)


def _check_nesting(slices: list[tuple[int, int]]) -> None:
    open_until: list[int] = []
    for start, end in sorted(slices, key=lambda slice_: (slice_[0], -slice_[1])):
        while open_until and open_until[-1] <= start:
            open_until.pop()
        assert not open_until or end <= open_until[-1], "slices of one row overlap"
        open_until.append(end)


def _check_pairs(events: list[Event]) -> None:
    open_names: list[str] = []
    times = [event["ts"] for event in events]
    assert times == sorted(times)
    for event in events:
        if event["ph"] == "b":
            open_names.append(event["name"])
        else:
            assert open_names.pop() == event["name"]
    assert not open_names


def _ns(us: float) -> int:
    return round(us * 1000)
