"""Frees memory that compiling needs and running does not."""

import ctypes
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from engine.pnnx.mapped_pages import release_all_pages

_LIBRARY = "libllvmlite"
_MAPS = Path("/proc/self/smaps")
_DONT_NEED = 4
"""MADV_DONTNEED: pages of a file are dropped, and read again where they are needed again."""


def release_compiler_memory() -> None:
    """Drop the pages of LLVM's file and return freed memory to the system; Linux with glibc only.

    Some 50 MB: as much as the weights of a model. To be called where LLVM is loaded.
    """
    _drop_pages(_LIBRARY)
    release_heap()


@lru_cache(maxsize=1)
def make_room_for_compiler() -> None:
    """Release the pages of libraries, the first time: LLVM takes more memory than all that runs afterwards."""
    release_file_pages()
    release_heap()


def release_file_pages() -> None:
    """Drop the pages of all libraries and mapped weights; pages that are still needed are faulted in again.

    Some 15 MB, used by imports, and the weights of idle models. Linux only.
    """
    _drop_pages("")
    release_all_pages()


def release_heap() -> None:
    """Return freed memory to the system; does nothing but with glibc."""
    process = ctypes.CDLL(None)
    if hasattr(process, "malloc_trim"):
        process.malloc_trim(0)


def _drop_pages(library: str) -> None:
    process = ctypes.CDLL(None)
    for start, size in unchanged_pages(library):
        process.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONT_NEED)


def unchanged_pages(library: str) -> Iterator[tuple[int, int]]:
    """Yield address and bytes of what is mapped of libraries, cannot be written, and is as it is in the file.

    What the loader wrote before it took the right to write away would be lost.

    Args:
        library: what the name of a file begins with.
    """
    try:
        maps = _MAPS.read_text("utf-8", "backslashreplace")  # names of files need not be UTF-8
    except OSError:  # missing or unreadable
        return
    # a line of where it lies, then one for each number that is known of it
    place = rf"^([0-9a-f]+)-([0-9a-f]+) r-.p [^/\n]*/(?:.*/)?{library}[^/\n]*\.so\b.*\n((?:[A-Z].*\n)*)"
    for start, end, numbers in re.findall(place, maps, re.MULTILINE):
        if all(re.search(rf"^{kind}: +0 kB$", numbers, re.MULTILINE) for kind in ("Anonymous", "Swap")):
            yield int(start, 16), int(end, 16) - int(start, 16)
