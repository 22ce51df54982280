"""Central directory of a zip archive, from the records at its end, classic or zip64."""

from dataclasses import dataclass
from pathlib import Path

from engine.errors import ArchiveError
from engine.pnnx import zip_records as zr

MAX_ENTRIES = 2**20
MAX_COMMENT = 0xFFFF
LONGEST_END = zr.END_RECORD.size + MAX_COMMENT
"""Bytes at the end of a file that hold its end record, the comment included."""


@dataclass(frozen=True, slots=True)
class Directory:
    """Position of the central directory, and its declared number of entries."""

    start: int
    end: int
    count: int


def find_directory(path: Path, view: memoryview) -> Directory:
    """Locate the directory and check that it lies in the file and has room for its entries.

    Raises:
        ArchiveError: the end of the file is not that of a whole, one-part zip archive.
    """
    end_start = _find_end_record(path, view)
    end = zr.EndRecord._make(zr.END_RECORD.unpack_from(view, end_start))
    locator_start = end_start - zr.ZIP64_LOCATOR.size
    if locator_start >= 0 and view[locator_start : locator_start + 4] == zr.ZIP64_LOCATOR_SIGNATURE:
        wide, limit = _read_zip64_end_record(path, view, locator_start)
        return _checked_directory(path, wide, limit)
    if zr.FULL_16 in end[1:5] or zr.FULL_32 in (end.size, end.start):
        raise ArchiveError(path, None, "the zip64 records are missing", "them before the end record")
    return _checked_directory(path, end, end_start)


def _find_end_record(path: Path, view: memoryview) -> int:
    """Return the offset of the last end record whose comment ends with the file."""
    window = max(0, len(view) - LONGEST_END)
    return window + find_end_record(path, bytes(view[:4]), bytes(view[window:]))


def find_end_record(path: Path, head: bytes, tail: bytes) -> int:
    """Return where in the last bytes of a file its end record stands.

    Args:
        path: the file.
        head: its first four bytes.
        tail: its last `LONGEST_END` bytes, or all where it has no more.

    Raises:
        ArchiveError: there is none.
    """
    at = tail.rfind(zr.END_SIGNATURE, 0, len(tail) - zr.END_RECORD.size + len(zr.END_SIGNATURE))
    while at >= 0:
        record = zr.EndRecord._make(zr.END_RECORD.unpack_from(tail, at))
        if at + zr.END_RECORD.size + record.comment_length == len(tail):
            return at
        at = tail.rfind(zr.END_SIGNATURE, 0, at)
    problem = "truncated" if head in (zr.LOCAL_SIGNATURE, zr.ZIP64_END_SIGNATURE) else "not a zip archive"
    raise ArchiveError(path, None, problem, "a zip end record in the last bytes of the file")


def _read_zip64_end_record(path: Path, view: memoryview, at: int) -> tuple[zr.Zip64EndRecord, int]:
    """Follow the locator at offset `at`; return the record and where it stands."""
    locator = zr.Zip64Locator._make(zr.ZIP64_LOCATOR.unpack_from(view, at))
    start = locator.start
    if start + zr.ZIP64_END_RECORD.size > at or view[start : start + 4] != zr.ZIP64_END_SIGNATURE:
        raise ArchiveError(path, None, f"no zip64 end record at byte {start}", "it before its locator")
    record = zr.Zip64EndRecord._make(zr.ZIP64_END_RECORD.unpack_from(view, start))
    length = at - start - 12
    if record.length != length:
        raise ArchiveError(path, None, f"a zip64 end record of {record.length} bytes", f"{length} bytes")
    return record, start


def _checked_directory(path: Path, end: zr.EndRecord | zr.Zip64EndRecord, limit: int) -> Directory:
    if end.disk or end.directory_disk or end.entries_here != end.entries:
        raise ArchiveError(path, None, "the archive spans several disks", "one file")
    if end.start + end.size != limit:
        problem = f"a directory from byte {end.start} to {end.start + end.size}"
        raise ArchiveError(path, None, problem, f"it to end at byte {limit}, where the end records begin")
    room = min(end.size // zr.CENTRAL_HEADER.size, MAX_ENTRIES)
    if end.entries > room:
        raise ArchiveError(
            path, None, f"{end.entries} entries in a directory of {end.size} bytes", f"at most {room}"
        )
    return Directory(end.start, limit, end.entries)
