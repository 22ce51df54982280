"""The stop signal: reasons, deadline and the words that native code reads."""

import ctypes
import threading
import time

import pytest

from engine.run.stop import NEVER, StopSignal


def words(signal: StopSignal) -> tuple[int, int]:
    first, second = (ctypes.c_int64 * 2).from_address(signal.address)
    return first, second


def test_it_lets_a_run_go_on_until_stopped() -> None:
    signal = StopSignal()
    assert signal.reason() is None
    assert signal() is None
    assert signal.deadline is None
    assert words(signal) == (0, NEVER)
    signal.stop("the client left")
    assert signal.reason() == signal() == "the client left"
    assert words(signal) == (1, NEVER)


def test_the_first_reason_stays() -> None:
    signal = StopSignal()
    signal.stop("first")
    signal.stop("second")
    assert signal.reason() == "first"


def test_its_words_have_a_cache_line_of_their_own() -> None:
    assert all(StopSignal().address % 64 == 0 for _ in range(20))


def test_a_deadline_that_has_passed_is_a_reason() -> None:
    signal = StopSignal(time.monotonic(), "too slow")
    assert signal.reason() == "too slow"


def test_a_reason_given_before_the_deadline_wins() -> None:
    signal = StopSignal(time.monotonic() + 1000)
    assert signal.reason() is None
    signal.stop("stopped here")
    assert signal.reason() == "stopped here"


def test_native_code_finds_the_deadline_in_nanoseconds() -> None:
    signal = StopSignal(12.5)
    assert words(signal) == (0, 12_500_000_000)
    assert signal.deadline == 12.5


@pytest.mark.parametrize("deadline", [float("inf"), float("nan"), 1e30])
def test_a_deadline_beyond_the_clock_never_comes(deadline: float) -> None:
    signal = StopSignal(deadline)
    assert signal.deadline is None
    assert signal.reason() is None


def test_a_deadline_before_the_clock_began_has_passed() -> None:
    assert StopSignal(-float("inf")).reason() == "its time is up"


def test_threads_agree_on_one_reason() -> None:
    signal = StopSignal()
    barrier = threading.Barrier(4)
    seen: list[str | None] = []

    def work(name: str) -> None:
        barrier.wait()
        signal.stop(name)
        seen.append(signal.reason())

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert len(set(seen)) == 1
