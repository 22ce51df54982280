"""Compiles programs in the background, on one thread, a few at a time, while other runs go on."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

MOST_WAITING = 4
"""Programs that may be compiled or wait for it at once, so that a client that keeps sending new shapes is limited."""

_places = threading.BoundedSemaphore(MOST_WAITING)
_logger = logging.getLogger(__name__)


def compile_in_background(work: Callable[[], object]) -> bool:
    """Do some work on the compiler's thread; returns False, and does nothing, if too much work is waiting already.

    The same where the system has no memory for the thread. Nobody waits for the work: what it raises is logged.
    """
    if not _places.acquire(blocking=False):
        return False

    def do() -> None:
        try:
            work()
        finally:
            _places.release()

    try:
        _thread().submit(do).add_done_callback(_tell)
    except RuntimeError:  # the thread cannot be started
        _places.release()
        return False
    return True


def _tell(future: Future[None]) -> None:
    error = None if future.cancelled() else future.exception()
    if isinstance(error, MemoryError):
        _logger.warning(
            "a program is not compiled, as memory is short; the numpy layers run in its place: %s", error
        )
    elif error is not None:
        _logger.error("a program could not be compiled beside the runs", exc_info=error)


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="kuiper-compiler")
