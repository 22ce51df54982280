"""Clients that do not read are cut off: after a time, and the slowest where memory is short."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from service.server.unsent_responses import LEAST_RATE, UnsentResponses

PERIOD = 3.0


class Reader:
    """A client with a response to read."""

    def __init__(self, unsent: int) -> None:
        self.unsent = unsent
        self.is_cut_off = False

    def unsent_bytes(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_cut_off = True


@dataclass
class Timer:
    """A call that waits for its time."""

    when: float
    function: Callable[..., object]
    arguments: tuple[object, ...]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """Time that passes when it is reported to, and calls that wait for it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, function: Callable[..., object], *arguments: object) -> Timer:
        self.timers.append(Timer(self.now + delay, function, arguments))
        return self.timers[-1]

    def step(self) -> None:
        """Let a second pass."""
        self.now += 1.0
        due = [timer for timer in self.timers if timer.when <= self.now]
        self.timers = [timer for timer in self.timers if timer.when > self.now]
        for timer in due:
            if not timer.is_cancelled:
                timer.function(*timer.arguments)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    known = Clock()
    monkeypatch.setattr("asyncio.get_running_loop", lambda: known)
    yield known
    assert all(timer.is_cancelled for timer in known.timers), "nobody reads, and yet there is a timer"


def test_a_client_that_reads_nothing_has_its_time(clock: Clock) -> None:
    responses, reader = UnsentResponses(1 << 30, PERIOD), Reader(1 << 20)
    responses.watch(reader)
    for _ in range(2):
        clock.step()
    assert not reader.is_cut_off
    clock.step()
    assert reader.is_cut_off


def test_a_client_that_reads_too_slowly_is_cut_off_and_one_that_reads_is_not(clock: Clock) -> None:
    responses, slow, steady = UnsentResponses(1 << 30, PERIOD), Reader(1 << 20), Reader(1 << 20)
    responses.watch(slow)
    responses.watch(steady)
    while steady.unsent:
        slow.unsent -= 10
        steady.unsent = max(0, steady.unsent - LEAST_RATE)
        clock.step()
    assert slow.is_cut_off
    assert not steady.is_cut_off


def test_a_client_that_gets_response_after_response_is_not_taken_for_a_slow_one(clock: Clock) -> None:
    responses, reader = UnsentResponses(1 << 30, PERIOD), Reader(1 << 20)
    responses.watch(reader)
    for _ in range(10):
        reader.unsent = 0
        responses.note(reader)  # it has read all, and the next response follows
        reader.unsent = 1 << 20
        responses.watch(reader)
        clock.step()
    assert not reader.is_cut_off
    responses.forget(reader)


def test_the_slowest_make_room(clock: Clock) -> None:
    responses = UnsentResponses(100_000, 60.0)
    readers = [Reader(40_000) for _ in range(4)]
    for reader in readers[:2]:
        responses.watch(reader)
    clock.step()
    readers[0].unsent -= 1000
    clock.step()
    responses.watch(readers[2])
    assert [reader.is_cut_off for reader in readers] == [False, True, False, False]
    responses.watch(readers[3])
    assert [reader.is_cut_off for reader in readers] == [True, True, False, False]
    for reader in readers[2:]:
        responses.forget(reader)


def test_who_has_just_begun_and_who_is_alone_may_exceed_the_limit(clock: Clock) -> None:
    responses = UnsentResponses(10, 60.0)
    readers = [Reader(40_000), Reader(40_000)]
    for reader in readers:
        responses.watch(reader)
    assert not any(reader.is_cut_off for reader in readers)
    clock.step()
    assert [reader.is_cut_off for reader in readers] == [True, False]
    clock.step()
    assert not readers[1].is_cut_off
    readers[1].unsent = 0
    clock.step()
