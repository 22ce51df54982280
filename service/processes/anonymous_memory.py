"""Memory without a name that several processes share."""

import os
import tempfile


def make_memory(name: str, size: int) -> int:
    """Return the descriptor of so many bytes of memory, all zeros; they end with the processes that hold it.

    Args:
        name: shown where the system lists what a process has open.
        size: bytes of address space; only what is written takes memory.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(name)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, size)
    return descriptor
