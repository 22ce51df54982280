"""Reads the `.bin`: a zip archive of stored entries, mapped into memory and never copied.

The order is that of any reader of hostile files: find the end, check every length against the file before
using it, then every entry against the directory and the entries against each other: they must fill the file
from its first byte to the directory, without gap or overlap. Nothing is allocated from a number in the file.
"""

import mmap
import stat
import zlib
from pathlib import Path

from engine.errors import ArchiveError
from engine.pnnx import zip_records as zr
from engine.pnnx.zip_directory import find_directory
from engine.pnnx.zip_entries import Entry, read_entries


def read_archive(path: Path) -> dict[str, memoryview]:
    """Map an archive and return its entries by name: read-only views that keep the file mapped.

    Every entry's checksum is verified, though that reads the whole file once, at 1 to 2 GB/s: a damaged
    weight would give wrong answers without any sign of it, and building a graph reads all weights anyway.

    Raises:
        ArchiveError: names the entry, and what was expected.
    """
    view = _map(path)
    directory = find_directory(path, view)
    entries = read_entries(path, view, directory)
    _check_coverage(path, entries, directory.start)
    contents: dict[str, memoryview] = {}
    for entry in entries:
        data = view[entry.data_start : entry.data_end]
        if zlib.crc32(data) != entry.checksum:
            raise ArchiveError(path, entry.name, "the data is damaged", f"CRC-32 {entry.checksum:08x}")
        contents[entry.name] = data
    return contents


def _map(path: Path) -> memoryview:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ArchiveError(path, None, "not a regular file", "a zip archive")
        if status.st_size < zr.END_RECORD.size:
            raise ArchiveError(path, None, f"truncated to {status.st_size} bytes", "a zip archive")
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ArchiveError(path, None, f"cannot be read: {error.strerror}", "a zip archive") from error
    except ValueError as error:  # a NUL in the path, or a file cut off after its size was taken
        raise ArchiveError(path, None, f"cannot be read: {error}", "a zip archive") from error


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
