"""Compiles programs beside runs: one at a time, on a thread of its own, in fair order among graphs."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from time import perf_counter
from typing import Protocol
from weakref import WeakKeyDictionary

from engine.switch_interval import short_switch_interval

_logger = logging.getLogger(__name__)
_lock = threading.Lock()


class Backlog(Protocol):
    """What is to be compiled for one graph."""

    def next(self) -> Callable[[], object] | None:
        """Return what to do next; None where nothing is worth it."""

    def __hash__(self) -> int: ...


class _Turns:
    """Backlogs with the seconds that were spent on each, and whether the thread is at work on one."""

    def __init__(self) -> None:
        self.spent: WeakKeyDictionary[Backlog, float] = WeakKeyDictionary()
        self.is_busy = False


_turns = _Turns()


def compile_beside(backlog: Backlog) -> None:
    """Have a graph's backlog worked off on the compiler's thread, in turns with those of other graphs.

    Nobody waits for it: what it raises is logged. Nothing is done where the system has no memory for the thread.
    """
    with _lock:
        _turns.spent.setdefault(backlog, min(_turns.spent.values(), default=0.0))
        if _turns.is_busy:
            return
        _turns.is_busy = True
    _start_turn()


def _start_turn() -> None:
    try:
        _thread().submit(_take_turn).add_done_callback(_tell)
    except RuntimeError:  # the thread cannot be started, or the interpreter ends
        with _lock:
            _turns.is_busy = False


def _take_turn() -> None:
    work = None
    try:
        backlog, work = _choose()
        if backlog is not None and work is not None:
            with short_switch_interval():
                _time(backlog, work)
    finally:
        if work is not None:
            _start_turn()


def _choose() -> tuple[Backlog | None, Callable[[], object] | None]:
    """Return the backlog that least was spent on, of those with something to do, and that; else note that all rest."""
    with _lock:
        _turns.is_busy = False  # also where memory is too short to choose
        for backlog, _ in sorted(_turns.spent.items(), key=lambda item: item[1]):
            work = backlog.next()
            if work is not None:
                _turns.is_busy = True
                return backlog, work
    return None, None


def _time(backlog: Backlog, work: Callable[[], object]) -> None:
    started = perf_counter()
    try:
        work()
    finally:
        with _lock:
            _turns.spent[backlog] = _turns.spent.get(backlog, 0.0) + perf_counter() - started


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
