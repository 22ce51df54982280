"""Reader of the `.bin`, a zip archive of stored entries: read once into memory, or mapped from a private copy.

The file itself is not mapped: pages of a mapped file change, or vanish (SIGBUS kills the process), when another model
is copied over it while its weights are in use. All of it is read anyway, for the checksums. Only an immutable copy of
its entries is mapped.

The order is that of any reader of hostile files: find the end, check every length against the file before
using it, then every entry against the directory and the entries against each other: they must fill the file
from its first byte to the directory, without gap or overlap. Nothing is allocated from a number in the file.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Protocol

import numpy as np

from engine.dtypes import Array
from engine.errors import ArchiveError
from engine.pnnx import zip_records as zr
from engine.pnnx.mapped_pages import checksum_of
from engine.pnnx.zip_directory import LONGEST_END, find_directory, find_end_record
from engine.pnnx.zip_entries import Entry, read_entries

_PIECE_BYTES = 1 << 20
"""Bytes that are copied at a time."""
PAGE = 4096
"""Alignment of the file's first byte in memory: entries aligned in the file are aligned in memory."""
LEAST_KEPT, MAX_KEPT = 4 << 20, 1 << 30
"""Size range of archives whose entries are cached: smaller ones load fast, larger ones would fill the disk."""
ALIGNMENT = 16
"""Alignment of an entry's first byte in memory: the largest element is a complex128."""


class EntryCache(Protocol):
    """Cache of the entries of archives, in mappable files, as arrays of bytes by name."""

    def load(self, key: str) -> dict[str, Array] | None:
        """Return the entries of the archive that has a digest, aligned and read-only; None if they are not cached."""

    def save(self, key: str, arrays: Mapping[str, Array]) -> dict[str, Array] | None:
        """Store the entries of an archive, and return them as `load` will, if possible."""

    def copy(self, parts: Iterable[bytes]) -> tuple[str, memoryview] | None:
        """Return the SHA-256 of bytes, and a mapped copy in a file without a name; None where there can be none."""


class ArchiveEntries(dict[str, memoryview]):
    """The entries of an archive by name.

    Attributes:
        digest: the SHA-256 of the archive, as hexadecimal digits; None where it was not computed.
    """

    digest: str | None = None


def read_archive(path: Path, cache: EntryCache | None = None) -> ArchiveEntries:
    """Read an archive and return its entries by name: aligned, read-only views of one block of memory.

    Every entry's checksum is verified, though that takes a second for 1 to 2 GB: a damaged weight would give wrong
    results silently.

    Args:
        path: the archive.
        cache: cache of the entries of large archives; cached entries take no private memory.

    Raises:
        ArchiveError: names the entry, and what was expected.
    """
    if cache is None or not LEAST_KEPT <= _size(path) <= MAX_KEPT:
        return ArchiveEntries(_entries(path, _read(path)))
    digest = _digest(path)
    kept = cache.load(digest)
    digest, entries = _keep(path, cache) if kept is None else (digest, _views(kept))
    known = ArchiveEntries(entries)
    known.digest = digest
    return known


def _keep(path: Path, cache: EntryCache) -> tuple[str, dict[str, memoryview]]:
    """Store an archive's entries in a cache; returns the digest of the archive, and the entries.

    It is a mapped copy that is read: all of the file takes memory of the process's own only where there can be none.
    """
    copy = cache.copy(_pieces(path))
    if copy is not None:
        digest, view = copy
        arrays = {entry.name: np.asarray(_data(view, entry)) for entry in _checked(path, view)}
        kept = cache.save(digest, arrays)
        if kept is not None:
            return digest, _views(kept)
    view = _read(path)
    return hashlib.sha256(view).hexdigest(), _entries(path, view)


def _views(kept: Mapping[str, Array]) -> dict[str, memoryview]:
    return {name: array.data for name, array in kept.items()}


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, of which it is checked first that it ends as an archive does."""
    with path.open("rb", buffering=0) as file:
        _check_end(path, file, os.fstat(file.fileno()).st_size)
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _size(path: Path) -> int:
    """Return the size of a regular file; 0 for anything else, whose error comes from reading it."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; "" where it cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _entries(path: Path, view: memoryview) -> dict[str, memoryview]:
    return {entry.name: _align(view, entry) for entry in _checked(path, view)}


def _checked(path: Path, view: memoryview) -> Sequence[Entry]:
    """Return the entries, with verified checksums."""
    directory = find_directory(path, view)
    entries = read_entries(path, view, directory)
    _check_coverage(path, entries, directory.start)
    for entry in entries:
        if checksum_of(_data(view, entry)) != entry.checksum:
            raise ArchiveError(path, entry.name, "the data is damaged", f"CRC-32 {entry.checksum:08x}")
    return entries


def _data(view: memoryview, entry: Entry) -> memoryview:
    return view[entry.data_start : entry.data_end]


def _align(view: memoryview, entry: Entry) -> memoryview:
    """Move an entry's data to an aligned address and return a view of it.

    The exporter aligns nothing; layers would have to copy each such weight and the memory of both would be held.
    There is room in front: the entry's own header, which is longer than a move and has been read.
    """
    shift = entry.data_start % ALIGNMENT
    start, end = entry.data_start - shift, entry.data_end - shift
    if shift:
        view[start:end] = view[entry.data_start : entry.data_end]
    return view[start:end].toreadonly()


def _read(path: Path) -> memoryview:
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "is a folder" if stat.S_ISDIR(mode) else "not a regular file"
            raise ArchiveError(path, None, what, "a zip archive")
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size < zr.END_RECORD.size:
                raise ArchiveError(path, None, f"truncated to {size} bytes", "a zip archive")
            _check_end(path, file, size)
            view = _allocate(path, size)
            filled = 0
            while count := file.readinto(view[filled:]):
                filled += count
    except OSError as error:
        raise ArchiveError(path, None, f"cannot be read: {error.strerror}", "a zip archive") from error
    except ValueError as error:  # a NUL in the path
        raise ArchiveError(path, None, f"cannot be read: {error}", "a zip archive") from error
    if filled < size:
        raise ArchiveError(
            path, None, f"was cut from {size} to {filled} bytes while it was read", "a file at rest"
        )
    return view


def _check_end(path: Path, file: FileIO, size: int) -> None:
    """Check that a file ends as an archive does, before memory for all of it is taken."""
    head = file.read(4)
    file.seek(max(0, size - LONGEST_END))
    find_end_record(path, head or b"", file.read(LONGEST_END) or b"")
    file.seek(0)


def _allocate(path: Path, size: int) -> memoryview:
    try:
        block = np.empty(size + PAGE, np.uint8)
    except MemoryError as error:
        raise ArchiveError(path, None, f"there is no memory for its {size} bytes") from error
    start = -block.ctypes.data % PAGE
    return block.data[start : start + size]


def _check_coverage(path: Path, entries: list[Entry], end: int) -> None:
    """Check that the entries fill the file up to the directory, each byte in one entry."""
    covered, after_descriptor = 0, False
    for entry in sorted(entries, key=lambda entry: entry.header_start):
        _check_gap(path, entry.name, entry.header_start - covered, after_descriptor)
        covered, after_descriptor = entry.data_end, bool(entry.flags & zr.DESCRIPTOR_FLAG)
    _check_gap(path, None, end - covered, after_descriptor)


def _check_gap(path: Path, name: str | None, gap: int, after_descriptor: bool) -> None:
    what = "the directory" if name is None else "the entry"
    if gap < 0:
        raise ArchiveError(path, name, f"{what} overlaps what is before it by {-gap} bytes", "no overlap")
    if gap and not (after_descriptor and gap in zr.DESCRIPTOR_LENGTHS):
        raise ArchiveError(
            path, name, f"{gap} bytes before {what} belong to no entry", "entries side by side"
        )
