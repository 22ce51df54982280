"""Pages of mapped files that are not needed for now."""

import mmap
import zlib
from collections.abc import Iterator
from threading import Lock
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from engine.dtypes import Array

_LEAST_BYTES = 1 << 16
"""Minimum bytes for a system call to pay off."""
_PIECE_BYTES = 1 << 21
"""Bytes of a mapped file that are read before their pages are released."""
_mapped: "WeakSet[mmap.mmap]" = WeakSet()
_digests: "WeakKeyDictionary[mmap.mmap, dict[tuple[int, int], str]]" = WeakKeyDictionary()
"""First byte and size of parts of mapped files -> their SHA-256: hashing takes half of a large model's second start."""
_lock = Lock()


def map_file(file: BinaryIO) -> mmap.mmap:
    """Map a file for reading.

    Raises:
        OSError: the system refuses it.
        ValueError: the file is empty.
    """
    made = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
    with _lock:
        _mapped.add(made)
    return made


def release_all_pages() -> None:
    """Let the system take back the memory of all files that `map_file` mapped, from any thread."""
    with _lock:
        files = list(_mapped)  # as long as they are in use here, nothing else lies in their place
    for file in files if hasattr(mmap, "MADV_DONTNEED") else ():
        file.madvise(mmap.MADV_DONTNEED)


def release_pages(data: Array | memoryview) -> None:
    """Release the pages of a mapped file that hold bytes (`madvise`); they are faulted in again when read.

    No-op for private memory, or few bytes.
    """
    if data.nbytes < _LEAST_BYTES:
        return
    owner = _owner_of(data)
    if owner is not None and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)


def set_sha256(file: mmap.mmap, digests: dict[tuple[int, int], str]) -> None:
    """Set the SHA-256 of parts of a mapped file, by first byte and size."""
    _digests[file] = digests


def sha256_of(data: Array) -> str | None:
    """Return the SHA-256 of elements that are a part of a mapped file, as it was set; None where none was."""
    owner = _owner_of(data)
    if owner is None or owner not in _digests or not data.flags.c_contiguous:
        return None
    first = np.frombuffer(owner, np.uint8, 1).ctypes.data
    return _digests[owner].get((data.ctypes.data - first, data.nbytes))


def _owner_of(data: Array | memoryview) -> mmap.mmap | None:
    """Return the mapped file that bytes lie in; None where they lie in none: mapped memory need not be a file's."""
    base: Any = data
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return base if isinstance(base, mmap.mmap) and base in _mapped else None


def in_pieces(data: memoryview) -> Iterator[memoryview]:
    """Yield bytes piece by piece, and release the pages of each at the next: at most one of them takes memory."""
    for first in range(0, data.nbytes, _PIECE_BYTES):
        yield data[first : first + _PIECE_BYTES]
        release_pages(data)


def checksum_of(data: memoryview) -> int:
    """Return the CRC-32 of bytes, and release their pages."""
    checksum = 0
    for piece in in_pieces(data):
        checksum = zlib.crc32(piece, checksum)
    return checksum
