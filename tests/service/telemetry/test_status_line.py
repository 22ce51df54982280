"""The line at the bottom of a terminal: its time, and what is written around it."""

import io
import logging
import sys
import time

import pytest

from service.telemetry import status_line as module
from service.telemetry.status_line import StatusLineHandler, status_line
from tests.service.terminal import CLEAR, Terminal


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    return now


def test_status_that_lasts_says_for_how_long(clock: list[float]) -> None:
    terminal = Terminal()
    handler = StatusLineHandler(terminal, has_status=True)
    for seconds, status in ((0, "one"), (1.9, "one"), (0.1, "one"), (5, "two"), (7, "two")):
        clock[0] += seconds
        handler.show(status)
    handler.show("")
    lines = ["one", "one", "one, 2 s", "two", "two, 7 s", ""]
    assert terminal.getvalue() == "".join(CLEAR + line for line in lines)


def test_time_goes_on_while_nothing_is_reported(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TICK_SECONDS", 0.001)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with status_line("exporting"):
        clock[0] += 12
        end = time.monotonic() + 10
        while not terminal.getvalue().endswith("exporting, 12 s") and time.monotonic() < end:
            time.sleep(0.001)
        assert terminal.getvalue().endswith("exporting, 12 s")
    time.sleep(0.05)
    assert terminal.getvalue().endswith(CLEAR)  # nothing is drawn once it is over


def test_long_status_leaves_room_for_its_time(clock: list[float]) -> None:
    terminal = Terminal()
    handler = StatusLineHandler(terminal, has_status=True)
    handler.show("x" * 500)
    clock[0] += 100
    handler.show("x" * 500)
    assert terminal.getvalue().endswith("x, 100 s")
    assert max(map(len, terminal.getvalue().split(CLEAR))) < 80
    handler.show("")


def test_warning_is_written_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with status_line("exporting") as show:
        logging.getLogger("engine").warning("odd")
        show("comparing")
    shown = ["", "exporting", "odd\n", "exporting", "comparing", ""]
    assert terminal.getvalue() == CLEAR.join(shown)


def test_without_a_terminal_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with status_line("exporting") as show:
        show("comparing")
    assert stream.getvalue() == ""
