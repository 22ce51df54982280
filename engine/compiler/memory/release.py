"""Frees memory that compiling needs and running does not."""

import ctypes
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from engine.pnnx.mapped_pages import release_all_pages

_LIBRARY = "libllvmlite"
_MAPS = Path("/proc/self/smaps")
_CHANGED = ("Anonymous", "Swap")
"""Of how much of a mapped file the process has pages of its own."""
_DONT_NEED = 4
"""MADV_DONTNEED: pages of a file are dropped, and read again where they are needed again."""


def release_compiler_memory() -> None:
    """Drop the pages of LLVM's file and return freed memory to the system; does nothing but on Linux with glibc.

    Some 50 MB: as much as the weights of a model. To be called where LLVM is loaded.
    """
    _drop(_compiler_pages())
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
    _drop(_pages_of(""))
    release_all_pages()


def release_heap() -> None:
    """Return freed memory to the system; does nothing but with glibc."""
    process = ctypes.CDLL(None)
    if hasattr(process, "malloc_trim"):
        process.malloc_trim(0)


def _drop(pages: Iterable[tuple[int, int]]) -> None:
    process = ctypes.CDLL(None)
    for start, size in pages:
        process.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONT_NEED)


@lru_cache(maxsize=1)
def _compiler_pages() -> Sequence[tuple[int, int]]:
    """Return what may be dropped of LLVM's file, once that is loaded: it stays mapped, and is read-only.

    To look it up takes longer than to link a program.
    """
    return _pages_of(_LIBRARY)


def _pages_of(library: str) -> Sequence[tuple[int, int]]:
    try:
        maps = _MAPS.read_text("utf-8", "backslashreplace")  # names of files need not be UTF-8
    except OSError:  # missing or unreadable
        return []
    return list(unchanged_pages(maps, library))


def unchanged_pages(maps: str, library: str) -> Iterator[tuple[int, int]]:
    """Yield address and bytes of what is mapped of a library, cannot be written, and is as it is in the file.

    What the loader wrote before it took the right to write away would be lost. So would be what other threads write
    where something else is mapped by now: but a library stays, once the last of its parts is there, which can be
    written. Files that are mapped for their data have no such part, and are left alone: any may be gone already.

    Args:
        maps: text of /proc/PID/smaps.
        library: what the file's name begins with; empty for all libraries.
    """
    # a line of where it lies, then one for each number that is known of it
    place = rf"^([0-9a-f]+)-([0-9a-f]+) r(.).p [^/\n]*(/(?:.*/)?{library}[^/\n]*)\n((?:[A-Z].*\n)*)"
    parts = list(re.finditer(place, maps, re.MULTILINE))
    last = {part[4]: int(part[1], 16) for part in parts if part[3] == "w"}
    for part in parts:
        start, end = (int(text, 16) for text in part.group(1, 2))
        is_loaded = part[3] == "-" and end <= last.get(part[4], 0)
        if is_loaded and all(re.search(rf"^{number}: +0 kB$", part[5], re.MULTILINE) for number in _CHANGED):
            yield start, end - start
