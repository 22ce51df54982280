"""A request to end a run early, in a form that both Python and native code can read."""

import ctypes
import threading
from time import monotonic_ns

NEVER = 2**63 - 1
"""Deadline of a signal without one, in nanoseconds."""
OVERDUE = "its time is up"
"""Reason of a signal whose deadline has passed."""
_CACHE_LINE = 64
_WORD = 8
_Memory = ctypes.c_char * (2 * _CACHE_LINE)


class StopSignal:
    """Stops a run before its next layer, on request or after its deadline.

    Callable, so that it can be passed where a stop check is expected. Native code reads it between layers from two
    64-bit words at `address`: the first is not 0 after a stop request, the second is the deadline.

    Args:
        deadline: the run's deadline, in seconds of time.monotonic; None for none.
        overdue: the reason that is given once the deadline has passed.

    Attributes:
        address: address of the two words; they have a cache line of their own.
    """

    __slots__ = ("_deadline", "_flag", "_lock", "_memory", "_overdue", "_reason", "address")

    def __init__(self, deadline: float | None = None, overdue: str = OVERDUE) -> None:
        self._memory = _Memory()
        self.address = -(-ctypes.addressof(self._memory) // _CACHE_LINE) * _CACHE_LINE
        self._flag = ctypes.c_int64.from_address(self.address)
        self._deadline = _nanoseconds(deadline)
        ctypes.c_int64.from_address(self.address + _WORD).value = self._deadline
        self._overdue = overdue
        self._reason: str | None = None
        self._lock = threading.Lock()

    @property
    def deadline(self) -> float | None:
        """The run's deadline, in seconds of time.monotonic; None for none."""
        return None if self._deadline == NEVER else self._deadline / 1e9

    def stop(self, reason: str) -> None:
        """Ask for a stop, from any thread; the first reason stays."""
        with self._lock:
            if self._reason is None:
                self._reason = reason
                self._flag.value = 1

    @property
    def stopped(self) -> str | None:
        """The reason that was given to `stop`, None where it was not called."""
        return self._reason

    def reason(self) -> str | None:
        """Return why the run is to stop; None while it is to go on."""
        if self._reason is None and self._deadline != NEVER and monotonic_ns() >= self._deadline:
            return self._overdue
        return self._reason

    __call__ = reason


def _nanoseconds(deadline: float | None) -> int:
    """Return a deadline in nanoseconds that a 64-bit word holds; NaN and what lies beyond its end are never."""
    if deadline is None or not deadline * 1e9 < NEVER:
        return NEVER
    return int(max(deadline, 0.0) * 1e9)
