"""Runs a program until it ends, or until the process that started this one is gone, however that came to its end.

    python guard.py PROGRAM ARGUMENT…

It is a program of its own, of the standard library alone. Its standard input is a pipe whose other end its starter
holds: that closes even where the starter is killed. Its exit code is the program's, or 128 and the number of the signal
that ended it.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence

SIGNALLED = 128
"""What is added to the number of a signal, as shells do it."""


def main(command: Sequence[str]) -> int:
    """Run a program; return its exit code."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  # no shell; the exporter names it
    threading.Thread(target=_end_with_starter, args=(process,), daemon=True).start()
    code = process.wait()
    return code if code >= 0 else SIGNALLED - code


def _end_with_starter(process: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
