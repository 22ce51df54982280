"""The `kuiper` command from its first moment: a signal is heard before the parts of the server are even imported."""

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from service.collection import without_collection

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CLEAR = "\r\x1b[K"
"""Takes the line away that says what a command does."""
_KILLED = 128
"""Exit code of a command that a signal ended, less the number of the signal, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code of the process."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    with _ended_by_signals(is_server=given[:1] == ["serve"]):
        with without_collection():
            from service.commands.dispatch import run_command  # noqa: PLC0415  # it takes half a second; signals are heard

        return run_command(given)


@contextmanager
def _ended_by_signals(*, is_server: bool) -> Iterator[None]:
    """Have a signal end the process at once, with one line; until the server, which has to drain, takes signals itself.

    Args:
        is_server: whether it is the command's purpose to run until a signal comes, so that the exit code is 0.
    """

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        # nothing has begun that would have to be ended in order, and imports may be half done
        os.write(
            2, f"{_CLEAR if os.isatty(2) else ''}kuiper: stopped by {signal.Signals(number).name}\n".encode()
        )
        os._exit(0 if is_server else _KILLED + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what a signal does
        return
    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


if __name__ == "__main__":
    sys.exit(main())
