"""What is reported of the loading of models, on a terminal and in a log."""

import errno
import io
import logging

import pytest

from service.log_context import FIELDS, context_fields, log_fields
from service.repository.load_progress import LoadState
from service.telemetry import load_report
from service.telemetry.load_report import LoadReport
from service.telemetry.status_line import StatusLineHandler

CLEAR = "\r\x1b[K"
ONE = LoadState(0, 2, ("compiling digits batch 8",))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(logging.getLogger(), "handlers", [StatusLineHandler(stream, has_status=True)])
    return stream


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(load_report, "monotonic", lambda: now[0])
    return now


def test_line_on_a_terminal_changes_in_place_and_goes_when_all_is_loaded(terminal: io.StringIO) -> None:
    report = LoadReport()
    report.show(ONE)
    logging.getLogger().warning("hello")
    report.show(LoadState(2, 2, ()))
    logging.getLogger().warning("ready")
    line = "loading 0 of 2 models, compiling digits batch 8"
    assert terminal.getvalue() == f"{CLEAR}{line}{CLEAR}hello\n{CLEAR}{line}{CLEAR}ready\n"


def test_line_is_never_wider_than_a_terminal(terminal: io.StringIO) -> None:
    LoadReport().show(LoadState(0, 2, ("x" * 500,)))
    assert len(terminal.getvalue()) < 80 + len(CLEAR)


def test_terminal_that_was_closed_is_no_failure(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(text: str) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(terminal, "write", fail)
    LoadReport().show(ONE)


def test_log_gets_a_line_a_second(caplog: pytest.LogCaptureFixture, clock: list[float]) -> None:
    report, contexts = LoadReport(), list[object]()

    def watch(record: logging.LogRecord) -> bool:
        contexts.append(dict(context_fields.get()))
        return True

    caplog.handler.addFilter(watch)
    with caplog.at_level(logging.INFO):
        for seconds, loaded in ((0.5, 0), (0.5, 0), (0.9, 1), (0.1, 1), (5.0, 2)):
            clock[0] += seconds
            with log_fields(model="one"):
                report.show(LoadState(loaded, 2, ()))
    reported = [(record.getMessage(), getattr(record, FIELDS)) for record in caplog.records]
    assert reported == [
        ("loading models", {"progress": "0 of 2 models"}),
        ("loading models", {"progress": "1 of 2 models"}),
    ]
    assert contexts == [{}, {}]  # the state is about all models, whichever the thread loads


def test_log_gets_what_is_reported_again_and_again_once_a_minute(
    caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    report = LoadReport()
    with caplog.at_level(logging.INFO):
        for _ in range(65):
            for step in ("the store is gone", "the store is gone; listing models"):
                clock[0] += 1
                report.show(LoadState(0, None, (step,)))
    reported = [getattr(record, FIELDS)["progress"] for record in caplog.records]
    assert reported == ["the store is gone", "the store is gone; listing models"] * 3
