"""Frees memory that compiling needs and running does not."""

import ctypes
from pathlib import Path

_LIBRARY = "libllvmlite"
_DONT_NEED = 4
"""MADV_DONTNEED: pages of a file are dropped, and read again where they are needed again."""


def release_compiler_memory() -> None:
    """Drop the pages of LLVM's own code and return freed memory to the system; does nothing but on Linux with glibc.

    Some 40 MB: as much as the weights of a model. Only machine code is dropped, which lies in the file as it is used;
    other pages that cannot be written now may have been, when the library was loaded.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    process = ctypes.CDLL(None)
    for line in maps.read_text().splitlines():
        place, access, *rest = line.split(maxsplit=5)
        if rest and _LIBRARY in rest[-1] and access == "r-xp":
            start, end = (int(text, 16) for text in place.split("-"))
            process.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED)
    if hasattr(process, "malloc_trim"):
        process.malloc_trim(0)
