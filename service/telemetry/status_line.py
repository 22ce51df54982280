"""A line at the bottom of a terminal that changes in place, below the log."""

import logging
from contextlib import suppress
from typing import TextIO

_CLEAR = "\r\x1b[K"
_WIDTH = 78
"""Characters that are shown: a line that wraps could not be cleared."""


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

    def show(self, status: str) -> None:
        """Replace the status line; an empty one goes away."""
        self.acquire()
        try:
            self._status = status[:_WIDTH]
            self._write(_CLEAR + self._status)
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record above the status line."""
        if not self._status:
            super().emit(record)
            return
        self._write(_CLEAR)
        super().emit(record)
        self._write(self._status)

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a terminal that was closed keeps no model from being loaded
            self.stream.write(text)
            self.flush()


def show_status(status: str) -> bool:
    """Show a status line below the log of the process; returns whether there is a terminal to show it on.

    Args:
        status: the line; empty to take it away.
    """
    shown = False
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StatusLineHandler) and handler.has_status:
            handler.show(status)
            shown = True
    return shown
