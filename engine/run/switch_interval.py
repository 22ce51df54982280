"""Python's GIL switch interval: how long a thread may hold the GIL while others wait for it."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SHORT_SWITCH_INTERVAL = 0.0005
"""Short switch interval in seconds; Python's default is 0.005."""


class _Holders:
    """Contexts that currently need a short switch interval.

    Attributes:
        count: number of such contexts.
        usual: switch interval in seconds without such contexts.
    """

    count = 0
    usual = 0.0


_lock = threading.Lock()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Set a short GIL switch interval until this context, and every other such, is left.

    For long computations in Python, or in many small native calls that hold the GIL: a thread that returns from I/O or
    from a kernel waits one interval for the GIL, and several default intervals exceed the time of a request. Any thread
    may enter; it costs some microseconds.
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
