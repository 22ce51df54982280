"""The leads over other servers that are wanted."""

import pytest

from tests.bench.service import leads
from tests.bench.service.leads import BARS, Bar, lead, pairs, too_small
from tests.bench.service.load import LoadError, Timings
from tests.bench.service.results import OURS, OURS_TWICE, Lead


def rounds(*figures: float) -> list[Timings]:
    """Return timings whose rate and median are the same number."""
    return [Timings(figure, figure, 0.0) for figure in figures]


@pytest.mark.parametrize(("figure", "ratio"), [("rate", 2.0), ("p50", 0.5)])
def test_lead_is_that_of_the_medians_and_above_one_for_the_faster(figure: str, ratio: float) -> None:
    found = lead(Bar("digits", 4, "Triton", figure, 1.0), "Triton", rounds(60, 20, 10), rounds(1, 10, 90))
    assert (found.leader, found.ours, found.theirs, found.ratio) == (OURS, 20, 10, ratio)


def test_every_server_that_a_bar_names_is_compared() -> None:
    found = pairs("digits", [OURS, "Triton, 1 instance", "Triton, instances", "FastAPI", "LitServe"])
    assert [(bar.connections, bar.figure, name) for bar, name in found] == [
        (1, "p50", "FastAPI"),
        (4, "rate", "Triton, 1 instance"),
        (4, "rate", "Triton, instances"),
        (16, "rate", "Triton, 1 instance"),
        (16, "rate", "Triton, instances"),
    ]


def test_two_processes_are_compared_with_as_many_instances_as_there_are_cores() -> None:
    tritons = ["Triton, 1 instance", "Triton, instances"]
    found = pairs("digits", [OURS, OURS_TWICE, *tritons])
    assert [(bar.connections, bar.leader, name) for bar, name in found] == [
        (4, OURS, "Triton, 1 instance"),
        (4, OURS, "Triton, instances"),
        (4, OURS_TWICE, "Triton, instances"),
        (16, OURS, "Triton, 1 instance"),
        (16, OURS, "Triton, instances"),
        (16, OURS_TWICE, "Triton, instances"),
    ]
    assert leads._concerned(found) == [OURS, "Triton, 1 instance", "Triton, instances", OURS_TWICE]
    of_two = lead(found[2][0], "Triton, instances", rounds(3), rounds(2))
    assert (of_two.leader, of_two.ratio, of_two.wanted) == (OURS_TWICE, 1.5, 0.8)


def test_nothing_is_compared_with_a_server_that_is_not_there() -> None:
    assert pairs("digits", ["FastAPI", "Triton"]) == []
    assert pairs("resnet18", [OURS, "FastAPI"]) == []


def test_servers_take_turns_at_being_first(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def measure(url: str, request: bytes, connections: int, seconds: int) -> Timings:
        order.append(url)
        return Timings(len(order), 0.0, 0.0)

    monkeypatch.setattr(leads, "measure", measure)
    found = leads._rounds({"a": ("A", b""), "b": ("B", b"")}, 4, 1)
    assert "".join(order) == "ABBAAB"
    assert [timings.per_second for timings in found["a"]] == [1, 4, 5]


def test_server_that_responses_nothing_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leads, "measure", lambda *given: Timings(0.0, 0.0, 0.0))
    with pytest.raises(LoadError, match="^a answered nothing within 2 s"):
        leads._rounds({"a": ("A", b"")}, 4, 2)


def test_bars_are_those_that_are_wanted() -> None:
    ours = [bar for bar in BARS if bar.leader == OURS]
    assert {(bar.model, bar.connections, bar.server, bar.figure): bar.wanted for bar in ours} == {
        ("digits", 1, "FastAPI", "p50"): 1.0,
        ("digits", 4, "Triton", "rate"): 0.8,
        ("digits", 16, "Triton", "rate"): 1.0,
        ("resnet18", 16, "Triton", "rate"): 2.5,
    }


def test_two_processes_are_to_lead_by_as_much_as_one() -> None:
    wanted = {(bar.model, bar.connections): bar.wanted for bar in BARS if bar.leader == OURS}
    of_two = [bar for bar in BARS if bar.leader == OURS_TWICE]
    assert len(of_two) == 3
    for bar in of_two:
        assert bar.server == "Triton, instances"
        assert bar.wanted == wanted[bar.model, bar.connections]


def test_lead_that_is_too_small_is_reported() -> None:
    found = [
        Lead("digits", 4, "Triton", "rate", 79, 100, 0.8),
        Lead("digits", 16, "Triton", "rate", 100, 100, 1.0),
        Lead("digits", 1, "FastAPI", "p50", 0.6, 0.5, 1.0),
        Lead("digits", 16, "Triton, instances", "rate", 90, 100, 1.0, OURS_TWICE),
    ]
    assert too_small(found) == [
        "digits, 4 at once: Kuiper Serve is 0.79 times as fast as Triton by the rate; at least 0.8 times are wanted",
        "digits, 1 at once: Kuiper Serve is 0.83 times as fast as FastAPI by the p50; at least 1 times are wanted",
        "digits, 16 at once: Kuiper Serve, two processes is 0.90 times as fast as Triton, instances by the rate; "
        "at least 1 times are wanted",
    ]
