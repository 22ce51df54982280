"""Writes the `.bin`: a zip archive of stored entries that begin at multiples of 64 bytes."""

import struct
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile, ZipInfo

from engine.pnnx import zip_records as zr

ALIGNMENT = 64
"""A cache line, and the widest vector: weights can be used in place at full speed."""

ZIP64_FROM = 2**30
"""Entries of this many bytes get zip64 records; smaller ones can be read by every release of `pnnx`."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same graph gives the same bytes


def write_archive(path: Path, entries: Iterable[tuple[str, memoryview]]) -> None:
    """Write entries in the given order."""
    with path.open("wb") as file, ZipFile(file, "w", ZIP_STORED) as archive:
        for name, data in entries:
            large = data.nbytes >= ZIP64_FROM
            info = ZipInfo(name, _EPOCH)
            info.extra = _padding(file.tell() + _header_length(name, large))
            with archive.open(info, "w", force_zip64=large) as entry:
                entry.write(data)


def _header_length(name: str, large: bool) -> int:
    sizes = struct.calcsize("<2H2Q") if large else 0
    return zr.LOCAL_HEADER.size + len(name.encode()) + sizes


def _padding(start: int) -> bytes:
    """Return an extra field that moves data from offset `start` to the next multiple of the alignment."""
    head = struct.calcsize("<3H")
    count = -(start + head) % ALIGNMENT
    return struct.pack("<3H", zr.ALIGNMENT_EXTRA, count + 2, ALIGNMENT) + bytes(count)
