"""Gives memory back to the system that large requests have left behind."""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

INTERVAL_SECONDS = 1.0
"""How often memory is looked at."""
LONGEST_INTERVALS = 16
"""Intervals between two attempts, where there is nothing to give back."""
GROWTH_BYTES = 16 << 20
"""Growth that is worth an attempt."""
_STATM = Path("/proc/self/statm")


class MemoryTrimmer:
    """Has the C library return freed memory that it would keep, on a thread; where it cannot, does nothing.

    Without the interpreter's lock, and only while the process has more memory than when it had least. What cannot be
    given back is tried again after twice the time, or as soon as memory has changed.

    Args:
        trim: gives memory back; None where nothing can.
        resident: returns the bytes that the process has.
    """

    def __init__(self, trim: Callable[[], object] | None, resident: Callable[[], int]) -> None:
        self._trim = trim
        self._resident = resident
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory-trimmer", daemon=True)
        self._least = self._last = 0
        self._skipped, self._skips = 0, 0

    def start(self) -> None:
        """Start the thread."""
        if self._trim is not None:
            self._least = self._last = self._resident()
            self._thread.start()

    def close(self) -> None:
        """End the thread, and wait until it has ended."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> bool:
        """Look at the memory, and give some back where that is due; tells whether it was."""
        now = self._resident()
        self._least = min(self._least, now)
        if self._trim is None or now - self._least < GROWTH_BYTES:
            return False
        if abs(now - self._last) < GROWTH_BYTES and self._skipped < self._skips:
            self._skipped += 1
            return False
        self._trim()
        self._last = self._resident()
        is_of_use = now - self._last >= GROWTH_BYTES
        self._skips = 0 if is_of_use else min(2 * self._skips + 1, LONGEST_INTERVALS)
        self._skipped = 0
        return True

    def _watch(self) -> None:
        while not self._ended.wait(INTERVAL_SECONDS):
            self.look()


def memory_trimmer() -> MemoryTrimmer:
    """Return the trimmer of this process: on Linux with glibc it does something."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    trim = getattr(library, "malloc_trim", None)
    return MemoryTrimmer(None if trim is None else lambda: trim(0), resident_bytes)


def resident_bytes() -> int:
    """Return the bytes of memory that the process has now; Linux only."""
    return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
