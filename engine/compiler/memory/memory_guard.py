"""Memory guard of LLVM, which aborts the process if an allocation fails.

If the process has a memory limit (`ulimit -v`), LLVM's maximum memory is allocated and freed before each use of LLVM,
and runs and the compiler exclude each other, so that no run takes that memory. Without a limit there is no cost.

In a container, allocations succeed and the system kills the process when it uses the memory: `watch_memory` sets a
function that returns the memory left below the container's limit.
"""

import mmap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from types import ModuleType

resource: ModuleType | None
try:
    import resource
except ModuleNotFoundError:  # Windows has no limits of this kind
    resource = None

COMPILER_BYTES = 192 << 20
"""Bytes that must be free before LLVM is called: 128 MiB for the C library to set up the heap of a thread, and more."""

RESIDENT_BYTES = 48 << 20
"""Bytes that must be left below the limit of a container before LLVM is called: what it really uses of the above."""

MemoryLeft = Callable[[], int | None]
"""Returns how many bytes the process may still use; None where that is not limited, or not known."""


class _Watch:
    """The source of the memory left.

    Attributes:
        left: set by `watch_memory`.
    """

    left: MemoryLeft | None = None


def watch_memory(left: MemoryLeft | None) -> None:
    """Have the compiler check the memory left below a container's limit, before each use of LLVM.

    If it is too little, the reference implementation runs, and the program is compiled later.

    Args:
        left: returns bytes, None where there is no limit; called by any thread, once for each kernel. None ends the
            watch.
    """
    _Watch.left = left


def check_left() -> None:
    """Check that LLVM has room below the limit of a container.

    Raises:
        MemoryError: less than `RESIDENT_BYTES` are left.
    """
    left = None if _Watch.left is None else _Watch.left()
    if left is not None and left < RESIDENT_BYTES:
        raise MemoryError(f"less than {RESIDENT_BYTES >> 20} MiB are left below the limit of the container")


class CompilationLock:
    """Has either one thread compile, or any number of threads run; a thread that waits to compile comes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._compiling = 0

    @contextmanager
    def run(self) -> Iterator[None]:
        """Hold the lock for a run. Not reentrant."""
        with self._changed:
            while self._compiling:
                self._changed.wait()
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def compile(self) -> Iterator[None]:
        """Hold the lock for a use of LLVM. Not reentrant, and for one thread at a time.

        Raises:
            MemoryError: less than `COMPILER_BYTES` are free.
        """
        with self._changed:
            self._compiling += 1
            while self._running:
                self._changed.wait()
        try:
            check_free(COMPILER_BYTES)
            yield
        finally:
            with self._changed:
                self._compiling -= 1
                self._changed.notify_all()


def check_free(size: int) -> None:
    """Check that the system would give the process more memory, in bytes.

    Raises:
        MemoryError: it would not.
    """
    try:
        mmap.mmap(-1, size).close()
    except OSError as error:
        raise MemoryError(f"less than {size >> 20} MiB are free") from error


@lru_cache(maxsize=1)
def compilation_lock() -> CompilationLock | None:
    """Return the lock of this process; None where its memory has no limit."""
    if resource is None:
        return None
    limits = (resource.RLIMIT_AS, resource.RLIMIT_DATA)
    is_limited = any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in limits)
    return CompilationLock() if is_limited else None


def using_llvm() -> AbstractContextManager[None]:
    """Guard a use of LLVM.

    Raises:
        MemoryError: memory is limited, and too little is left.
    """
    check_left()
    known = compilation_lock()
    return nullcontext() if known is None else known.compile()
