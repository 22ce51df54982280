"""Compiles programs beside the runs that they are for: on one thread, a few at a time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

MOST_WAITING = 4
"""Programs that wait for the compiler or are at it; a client that sends shape after shape gets no further."""

_places = threading.BoundedSemaphore(MOST_WAITING)


def compile_beside(work: Callable[[], object]) -> bool:
    """Do some work on the compiler's thread; returns False, and does nothing, where too much of it waits already."""
    if not _places.acquire(blocking=False):
        return False

    def do() -> None:
        try:
            work()
        finally:
            _places.release()

    _thread().submit(do)
    return True


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="kuiper-compiler")
