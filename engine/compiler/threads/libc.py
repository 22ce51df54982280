"""The few functions of the C library that native code calls, by address: the clock, threads and their locks.

Where the system has no POSIX threads, native code runs on the calling thread alone; where it has no `clock_gettime`,
the clock is Python's own, which costs a microsecond a look and needs the GIL.
"""

import ctypes
import sys
import time
from functools import lru_cache

THREAD_CALLS = (
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
    "sched_yield",
)
"""libc functions with which native code waits and wakes."""
MUTEX_BYTES = CONDITION_BYTES = 128
"""Room for a mutex and for a condition variable; the largest known takes 64 bytes."""


@lru_cache(maxsize=1)
def library() -> ctypes.CDLL | None:
    """Return the C library that this process runs on, None where there is no POSIX one."""
    return None if sys.platform == "win32" else ctypes.CDLL(None)


def address_of(name: str) -> int | None:
    """Return the address of a C function, None where the system has none of that name."""
    function = getattr(library(), name, None)
    return None if function is None else ctypes.cast(function, ctypes.c_void_p).value


def has_threads() -> bool:
    """Return whether the system has the threads that teams are made of."""
    names = ("pthread_create", "pthread_join", "pthread_mutex_init", "pthread_cond_init", *THREAD_CALLS)
    return all(address_of(name) is not None for name in names)


def clock_id() -> int:
    """Return the clock that time.monotonic and time.perf_counter read."""
    if sys.platform == "darwin":
        return time.CLOCK_UPTIME_RAW
    return time.CLOCK_MONOTONIC


@lru_cache(maxsize=1)
def python_clock() -> int:
    """Return the address of a C function that returns time.monotonic_ns, for systems without clock_gettime."""
    return ctypes.cast(_python_clock, ctypes.c_void_p).value or 0


_python_clock = ctypes.CFUNCTYPE(ctypes.c_int64)(time.monotonic_ns)


def initialize_lock(mutex: int, condition: int) -> None:
    """Make a mutex and a condition variable at two addresses."""
    _check(_call("pthread_mutex_init", mutex, None), "pthread_mutex_init")
    _check(_call("pthread_cond_init", condition, None), "pthread_cond_init")


def start_thread(function: int, argument: int) -> int:
    """Start a thread that calls a C function with one address; returns its name for `join_thread`.

    Raises:
        OSError: the system gives no more threads.
    """
    thread = ctypes.c_size_t()
    _check(_call("pthread_create", ctypes.addressof(thread), None, function, argument), "pthread_create")
    return thread.value


def join_thread(thread: int) -> None:
    """Wait until a thread has ended."""
    _check(_call("pthread_join", thread, None), "pthread_join")


def _call(name: str, *arguments: int | None) -> int:
    function = getattr(library(), name)
    return int(function(*map(ctypes.c_void_p, arguments)))


def _check(error: int, name: str) -> None:
    if error:
        raise OSError(error, f"{name} failed")
