"""Threads take short turns with the interpreter as long as anybody wants it so."""

import sys
import threading

import pytest

from engine.run.switch_interval import SHORT_SWITCH_INTERVAL, short_switch_interval

pytestmark = pytest.mark.usefixtures("idle_compiler")
SECONDS = 60.0


def test_turns_are_short_until_the_last_context_is_left() -> None:
    usual = sys.getswitchinterval()
    entered, may_leave = threading.Event(), threading.Event()

    def hold() -> None:
        with short_switch_interval():
            entered.set()
            may_leave.wait(SECONDS)

    other = threading.Thread(target=hold)
    with short_switch_interval():
        other.start()
        assert entered.wait(SECONDS)
        assert sys.getswitchinterval() == pytest.approx(SHORT_SWITCH_INTERVAL)
    assert sys.getswitchinterval() == pytest.approx(SHORT_SWITCH_INTERVAL), (
        "the other one, which came later, is still there"
    )
    may_leave.set()
    other.join()
    assert sys.getswitchinterval() == usual


def test_turns_are_as_usual_after_an_error() -> None:
    usual = sys.getswitchinterval()
    with pytest.raises(LookupError), short_switch_interval():
        raise LookupError
    assert sys.getswitchinterval() == usual


def test_turns_that_are_shorter_anyway_stay_so() -> None:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SHORT_SWITCH_INTERVAL / 2)
    try:
        with short_switch_interval():
            assert sys.getswitchinterval() == pytest.approx(SHORT_SWITCH_INTERVAL / 2)
        assert sys.getswitchinterval() == pytest.approx(SHORT_SWITCH_INTERVAL / 2)
    finally:
        sys.setswitchinterval(usual)
