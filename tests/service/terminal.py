"""A stream that says it is a terminal."""

import io

CLEAR = "\r\x1b[K"
"""What takes a status line away."""


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    def isatty(self) -> bool:
        return True
