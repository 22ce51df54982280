"""A line at the bottom of a terminal that shows how far a command is."""

from typing import TextIO

_WIDTH = 30


class ProgressLine:
    """Progress in one line of the terminal; silent without a terminal.

    Args:
        stream: the output stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_shown = stream.isatty()
        self._length = 0

    def show(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if not self._is_shown:
            return
        bar = "#" * (_WIDTH * done // max(total, 1))
        line = f"{what:<14} [{bar:<{_WIDTH}}] {done}/{total}"
        self._write(line)

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._write("")
            self._stream.write("\r")

    def _write(self, line: str) -> None:
        self._stream.write("\r" + line.ljust(self._length))
        self._stream.flush()
        self._length = len(line)
