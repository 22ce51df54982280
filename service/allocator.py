"""The C library's allocator, told what a server does with memory."""

import ctypes
import sys

OWN_PAGES = 4 << 20
"""Bytes from which on a block has pages of its own, which go back to the system when it is freed."""
KEPT = 32 << 20
"""Bytes free at the end of the heap that do not go back to the system."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Have freed memory kept for the next request, where the C library is glibc.

    By default blocks from 128 KiB on are mapped and unmapped one by one, until the library finds out that larger ones
    are freed as well. Bodies and outputs of a few hundred kilobytes then cost more in page faults than in all else.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, OWN_PAGES)
        mallopt(_M_TRIM_THRESHOLD, KEPT)
