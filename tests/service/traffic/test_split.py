"""Shares: exact in turn, close by value, and moved no further than the weights are."""

import subprocess
import sys
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config.traffic_config import TrafficConfig
from service.traffic.split import Split

VALUES = [f"user-{number}".encode() for number in range(10_000)]
KNOWN = "3111333312323321"


def split_of(weights: dict[str, float], name: str = "m", start: int | None = None) -> Split:
    return Split(name, TrafficConfig(weights=weights).shares(list(weights)), start)


def test_ten_thousand_in_turn_are_split_to_a_thousandth() -> None:
    split = split_of({"2": 90, "3": 10})
    assert Counter(split.next() for _ in range(10_000))["3"] == pytest.approx(1000, abs=10)


@pytest.mark.parametrize("step", [2, 3, 10, 64])
def test_a_pattern_of_requests_does_not_follow_that_of_the_choices(step: int) -> None:
    split = split_of({"2": 90, "3": 10})
    chosen = [split.next() for _ in range(10_000 * step)]
    for first in range(min(step, 3)):
        assert Counter(chosen[first::step])["3"] == pytest.approx(1000, abs=50)


@given(
    st.dictionaries(st.integers(1, 99).map(str), st.floats(0.001, 1000), min_size=1, max_size=8),
    st.integers(0, (1 << 64) - 1),
)
def test_every_version_gets_its_share(weights: dict[str, float], start: int) -> None:
    split, total = split_of(weights, start=start), sum(weights.values())
    chosen = Counter(split.next() for _ in range(2000))
    for version, weight in weights.items():
        assert chosen[version] == pytest.approx(2000 * weight / total, abs=20)


def test_values_are_split_by_weight() -> None:
    split = split_of({"2": 90, "3": 10})
    assert Counter(map(split.of, VALUES))["3"] == pytest.approx(1000, abs=100)


def test_a_value_leads_to_the_same_version_in_another_process() -> None:
    program = (
        "from service.traffic.split import Split; s = Split('m', {'2': 0.5, '3': 0.5});"
        "print(''.join(s.of(b'user-%d' % n) for n in range(200)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    split = split_of({"2": 1, "3": 1})
    assert ran.stdout.strip() == "".join(map(split.of, VALUES[:200]))
    assert set(ran.stdout.strip()) == {"2", "3"}


def test_known_choices_stay_as_they_are() -> None:
    # a release that chose otherwise would move users between versions
    split = split_of({"1": 1, "2": 1, "3": 2}, name="digits")
    assert "".join(map(split.of, VALUES[:16])) == KNOWN


def test_values_are_split_again_for_each_model() -> None:
    one, other = split_of({"2": 1, "3": 1}, "one"), split_of({"2": 1, "3": 1}, "other")
    assert sum(one.of(value) == other.of(value) for value in VALUES) == pytest.approx(5000, abs=300)


def test_a_larger_weight_takes_values_and_gives_none_away() -> None:
    before, after = split_of({"2": 90, "3": 10}), split_of({"2": 80, "3": 20})
    moved = [(before.of(value), after.of(value)) for value in VALUES]
    assert ("3", "2") not in moved
    assert moved.count(("2", "3")) == pytest.approx(1000, abs=120)


def test_only_the_values_of_a_version_that_is_gone_move() -> None:
    before, after = split_of({"1": 1, "2": 1, "3": 1}), split_of({"1": 1, "2": 1})
    moved = Counter((before.of(value), after.of(value)) for value in VALUES)
    assert set(moved) == {("1", "1"), ("2", "2"), ("3", "1"), ("3", "2")}
    assert moved["3", "1"] == pytest.approx(moved["3", "2"], rel=0.15)


@given(st.binary(max_size=200))
def test_any_value_leads_to_a_version(value: bytes) -> None:
    assert split_of({"2": 1e-3, "3": 1e9}).of(value) in "23"


def test_the_largest_hash_leads_to_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = SimpleNamespace(digest=lambda: bytes([255]) * 8)
    monkeypatch.setattr("service.traffic.split.blake2b", lambda *_, **__: ones)
    assert Split("m", {"1": 0.5, "2": 0.5}).of(b"anna") == "1"
