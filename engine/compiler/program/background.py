"""Background compilation: one program at a time, on one thread, in fair order among graphs."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from time import perf_counter
from typing import Protocol
from weakref import WeakKeyDictionary

_logger = logging.getLogger(__name__)
_lock = threading.Lock()


class Backlog(Protocol):
    """Compile queue of one graph."""

    def next(self) -> Callable[[], object] | None:
        """Return the next task; None if there is none."""

    def __hash__(self) -> int: ...


class _Schedule:
    """Compile queues with the seconds spent on each, and whether the thread is busy."""

    def __init__(self) -> None:
        self.spent: WeakKeyDictionary[Backlog, float] = WeakKeyDictionary()
        self.is_busy = False


_schedule = _Schedule()


def compile_in_background(backlog: Backlog) -> None:
    """Process a graph's compile queue on the compiler's thread, round-robin with those of other graphs.

    The call does not wait; errors are logged. Nothing is done if the thread cannot be started.
    """
    with _lock:
        _schedule.spent.setdefault(backlog, min(_schedule.spent.values(), default=0.0))
        if _schedule.is_busy:
            return
        _schedule.is_busy = True
    _submit_next()


def finish_background() -> None:
    """Wait until the compile queues are empty: a process that ends before compiles part of them in vain."""
    while _is_busy():
        _thread().submit(_is_busy).result()  # runs after what the thread does now


def _is_busy() -> bool:
    with _lock:
        return _schedule.is_busy


def _submit_next() -> None:
    try:
        _thread().submit(_run_next).add_done_callback(_log_failure)
    except RuntimeError:  # the thread cannot be started, or Python is shutting down
        with _lock:
            _schedule.is_busy = False


def _run_next() -> None:
    work = None
    try:
        backlog, work = _choose()
        if backlog is not None and work is not None:
            _time(backlog, work)
    finally:
        if work is not None:
            _submit_next()


def _choose() -> tuple[Backlog | None, Callable[[], object] | None]:
    """Return the queue with the least time spent that has a task, and the task; without any, the thread is idle."""
    with _lock:
        _schedule.is_busy = False  # also after a MemoryError below
        for backlog, _ in sorted(_schedule.spent.items(), key=lambda item: item[1]):
            work = backlog.next()
            if work is not None:
                _schedule.is_busy = True
                return backlog, work
    return None, None


def _time(backlog: Backlog, work: Callable[[], object]) -> None:
    started = perf_counter()
    try:
        work()
    finally:
        with _lock:
            _schedule.spent[backlog] = _schedule.spent.get(backlog, 0.0) + perf_counter() - started


def _log_failure(future: Future[None]) -> None:
    error = None if future.cancelled() else future.exception()
    if isinstance(error, MemoryError):
        _logger.warning(
            "out of memory: a program is not compiled, the reference implementation runs instead: %s", error
        )
    elif error is not None:
        _logger.error("background compilation of a program failed", exc_info=error)


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="kuiper-compiler")
