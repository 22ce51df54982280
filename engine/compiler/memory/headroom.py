"""Memory for LLVM, where the system limits the process: LLVM ends the process if an allocation fails.

Before each use of LLVM, as much memory as it may take is asked for and given back. So that no run takes it meanwhile,
either runs or the compiler are at work. Where the process has no limit of its own, none of this costs anything.
"""

import mmap
import threading
from collections.abc import Iterator
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


class CompilationLock:
    """Has either one thread compile, or any number of threads run; a thread that waits to compile comes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._compiling = 0

    @contextmanager
    def run(self) -> Iterator[None]:
        """Enclose a run. Not for a thread that holds the lock already."""
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
        """Enclose a use of LLVM. Not for a thread that holds the lock already, nor for two threads at once.

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
    """Enclose a use of LLVM.

    Raises:
        MemoryError: memory is limited, and too little is left.
    """
    known = compilation_lock()
    return nullcontext() if known is None else known.compile()
