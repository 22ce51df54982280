"""Memory guard of LLVM, which aborts the process if an allocation fails.

LLVM's maximum memory is allocated and freed before each use of LLVM, which fails where the address space is limited
(`ulimit -v`). In a container, allocations succeed and the system kills the process when it uses the memory:
`watch_memory` sets a function that returns the memory left below the container's limit.
"""

import mmap
from collections.abc import Callable

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


def check_memory() -> None:
    """Check that LLVM has the memory that it may take.

    Raises:
        MemoryError: less than `RESIDENT_BYTES` are left below the limit of a container, or less than `COMPILER_BYTES`
            are free.
    """
    left = None if _Watch.left is None else _Watch.left()
    if left is not None and left < RESIDENT_BYTES:
        raise MemoryError(f"less than {RESIDENT_BYTES >> 20} MiB are left below the limit of the container")
    try:
        mmap.mmap(-1, COMPILER_BYTES).close()
    except OSError as error:
        raise MemoryError(f"less than {COMPILER_BYTES >> 20} MiB are free") from error
