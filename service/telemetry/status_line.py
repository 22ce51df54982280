"""A line at the bottom of a terminal that changes in place, below the log."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TextIO

_CLEAR = "\r\x1b[K"
_WIDTH = 78
"""Characters that are shown: a line that wraps could not be cleared."""
_TICK_SECONDS = 1.0
"""Between two updates of the time that a status has lasted."""
_TIMED_SECONDS = 2.0
"""How long a status lasts before its time is shown."""


class StatusLineHandler(logging.StreamHandler[TextIO]):
    """Writes log records to a stream; on a terminal, a status line stays below them.

    Args:
        stream: where to write.
        has_status: whether the stream is a terminal that people read.
    """

    def __init__(self, stream: TextIO, *, has_status: bool) -> None:
        super().__init__(stream)
        self.has_status = has_status
        self._status = ""
        self._since = 0.0
        self._is_ticking = False

    def show(self, status: str) -> None:
        """Replace the status line; an empty one goes away. Without a terminal, nothing is shown."""
        if not self.has_status:
            return
        self.acquire()
        try:
            if status != self._status:
                self._status, self._since = status, monotonic()
            self._draw()
            if status and not self._is_ticking:
                self._is_ticking = True
                threading.Thread(target=self._tick, name="status-line", daemon=True).start()
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the status line."""
        if not self._status:
            super().emit(record)
            return
        self._write(_CLEAR)
        super().emit(record)
        self._draw()

    def _tick(self) -> None:
        """Update the time of the status until there is none."""
        while self._is_ticking:
            sleep(_TICK_SECONDS)
            self.acquire()
            try:
                self._is_ticking = bool(self._status)
                if self._status:
                    self._draw()
            finally:
                self.release()

    def _draw(self) -> None:
        seconds = monotonic() - self._since
        time = f", {seconds:.0f} s" if self._status and seconds >= _TIMED_SECONDS else ""
        self._write(_CLEAR + self._status[: _WIDTH - len(time)] + time)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that was closed keeps no model from being loaded
            self.stream.write(text)
            self.flush()


def show_status(status: str) -> bool:
    """Show a status line below the log of the process; returns whether there is a terminal to show it on.

    Args:
        status: the line; empty to take it away.
    """
    handlers = [one for one in logging.getLogger().handlers if isinstance(one, StatusLineHandler)]
    for handler in handlers:
        handler.show(status)
    return any(handler.has_status for handler in handlers)


@contextmanager
def status_line(status: str, *, shows_log: bool = True) -> Iterator[Callable[[str], None]]:
    """Show what a command does until the block ends, where standard error is a terminal; yields what replaces it.

    Standard output is written only before and after the block: it may be the same terminal.

    Args:
        status: the first line.
        shows_log: whether warnings are written, above the line.
    """
    handler = StatusLineHandler(sys.stderr, has_status=sys.stderr.isatty())
    root = logging.getLogger()
    if shows_log:
        root.addHandler(handler)
    handler.show(status)
    try:
        yield handler.show
    finally:
        handler.show("")
        root.removeHandler(handler)
