"""Returns memory to the system that requests have freed and the allocator keeps."""

import ctypes
import gc
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from engine.compiler.memory.arena import release_idle_memory

SLACK_BYTES = 24 << 20
"""Memory above the least that was ever resident which is left alone."""
_SECONDS = 1.0
"""Time between two looks at the memory."""
_MAX_SECONDS = 3.0
_STATM = Path("/proc/self/statm")
_ARENA_MAX = -8
"""The option of glibc's `mallopt` that limits the number of heaps (malloc.h)."""


def use_one_heap() -> None:
    """Have all threads allocate from one heap, where the allocator is glibc's; to be called before there are threads.

    By default each thread has one of its own, and `malloc_trim` cannot give back the end of any but the first: up to
    64 MiB of each, once something large was freed. `MALLOC_ARENA_MAX`, where it is set, has the last word.
    """
    if not _STATM.exists() or "MALLOC_ARENA_MAX" in os.environ:
        return
    process = ctypes.CDLL(None)
    if hasattr(process, "mallopt"):
        process.mallopt(ctypes.c_int(_ARENA_MAX), ctypes.c_int(1))


class MemoryTrimmer:
    """Looks at the process's memory from time to time, and has the allocator give back what is free.

    After large requests glibc keeps what they have freed, in an arena of each thread, for the next large request; and
    so does the engine with the memory of their runs. Where trimming gives nothing back, the memory is in use, and the
    time until the next attempt doubles. Nothing is done where the allocator is not glibc's.

    Args:
        resident: returns the resident bytes.
        trim: has the allocator give back what is free; None where it cannot.
    """

    def __init__(
        self, resident: Callable[[], int] | None = None, trim: Callable[[], object] | None = None
    ) -> None:
        self._resident = resident or _resident_bytes
        self._trim = trim or _find_trim()
        self._least = 0
        self._wait = _SECONDS
        self._has_garbage = False
        self._ended = Event()
        self._thread = Thread(target=self._run, name="memory-trimmer")

    def start(self) -> None:
        """Start looking."""
        if self._trim is not None:
            self._thread.start()

    def collect(self) -> None:
        """Have cycles of objects looked for at the next look, as something large was dropped; any thread may ask.

        A server makes so few of them that Python itself might not look for hours.
        """
        self._has_garbage = True

    def close(self) -> None:
        """Stop looking."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()

    def look(self) -> float:
        """Trim where that may help; returns the seconds until the next look."""
        if self._has_garbage:
            self._has_garbage = False
            gc.collect()
        before = self._resident()
        self._least = min(self._least or before, before)
        if self._trim is None or before <= self._least + SLACK_BYTES:
            self._wait = _SECONDS
            return _SECONDS
        has_more = release_idle_memory() > 0
        self._trim()
        is_vain = not has_more and before - self._resident() < SLACK_BYTES // 4
        self._wait = min(2 * self._wait, _MAX_SECONDS) if is_vain else _SECONDS
        return self._wait

    def _run(self) -> None:
        seconds = _SECONDS
        while not self._ended.wait(seconds):
            seconds = self.look()


def resident_bytes() -> int | None:
    """Return the resident bytes of this process; None where the system does not say as Linux does."""
    return _resident_bytes() if _STATM.exists() else None


def _resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _find_trim() -> Callable[[], object] | None:
    if not _STATM.exists():
        return None
    process = ctypes.CDLL(None)
    if not hasattr(process, "malloc_trim"):
        return None
    trim = process.malloc_trim
    trim.argtypes = [ctypes.c_size_t]
    return lambda: trim(0)
