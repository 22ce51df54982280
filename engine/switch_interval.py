"""How long a thread may keep the interpreter to itself while others want it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SHORT_SWITCH_INTERVAL = 0.0005
"""Seconds of a short turn; 0.005 is usual."""


class _Holders:
    """Who wants short turns now.

    Attributes:
        count: how many do.
        usual: seconds of a turn while nobody does.
    """

    count = 0
    usual = 0.0


_lock = threading.Lock()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Have all threads take shorter turns with the interpreter until this context, and every other such, is left.

    For what computes in Python for long, or in many small steps of native code that hold the interpreter's lock: every
    thread that comes back from the network or from a kernel waits for the end of its turn, and of the usual ones,
    several add up to more than a request takes. Any thread may enter; it costs some microseconds.
    """
    with _lock:
        if not _Holders.count:
            _Holders.usual = sys.getswitchinterval()
            sys.setswitchinterval(min(_Holders.usual, SHORT_SWITCH_INTERVAL))
        _Holders.count += 1
    try:
        yield
    finally:
        with _lock:
            _Holders.count -= 1
            if not _Holders.count:
                sys.setswitchinterval(_Holders.usual)
