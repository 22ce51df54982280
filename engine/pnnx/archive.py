"""Reads the `.bin`: a zip archive of stored entries, mapped into memory and never copied.

The order is that of any reader of hostile files: find the end, check every length against the file before using it,
then every entry against the directory and the entries against each other: they must fill the file from its
first byte to the directory, without a gap or an overlap. Nothing is allocated from a number that the file gives.
"""

import mmap
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path

from engine.errors import ArchiveError
from engine.pnnx import zip_records as zr

MAX_ENTRIES = 2**20
MAX_COMMENT = 0xFFFF


def read_archive(path: Path) -> dict[str, memoryview]:
    """Map an archive and return its entries by name: read-only views that keep the file mapped.

    Every entry's checksum is verified, though that reads the whole file once, at 1 to 2 GB/s: a damaged weight
    would give wrong answers without any sign of it, and building a graph goes over all weights anyway.

    Raises:
        ArchiveError: names the entry, and what was expected.
    """
    view = _map(path)
    directory = _find_directory(path, view)
    entries = [_check_local_header(path, view, entry) for entry in _read_directory(path, view, directory)]
    _check_coverage(path, entries, directory.start)
    contents: dict[str, memoryview] = {}
    for entry in entries:
        data = view[entry.data_start : entry.data_end]
        if zlib.crc32(data) != entry.checksum:
            raise ArchiveError(path, entry.name, "the data is damaged", f"CRC-32 {entry.checksum:08x}")
        contents[entry.name] = data
    return contents


@dataclass(frozen=True, slots=True)
class _Directory:
    """Where the central directory stands, and how many entries it is said to have."""

    start: int
    end: int
    count: int


@dataclass(slots=True)
class _Entry:
    name: str
    flags: int
    checksum: int
    size: int
    header_start: int
    data_start: int = 0

    @property
    def data_end(self) -> int:
        return self.data_start + self.size


def _map(path: Path) -> memoryview:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ArchiveError(path, None, "not a regular file", "a zip archive")
        if status.st_size < zr.END_RECORD.size:
            raise ArchiveError(
                path, None, f"{status.st_size} bytes", "a zip archive, which takes at least 22"
            )
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ArchiveError(path, None, f"cannot be read: {error.strerror}", "a zip archive") from error
    except ValueError as error:  # a NUL in the path, or a file cut off after its size was taken
        raise ArchiveError(path, None, f"cannot be read: {error}", "a zip archive") from error


def _find_directory(path: Path, view: memoryview) -> _Directory:
    end = _find_end_record(path, view)
    _, disk, start_disk, disk_count, count, size, start, _ = zr.END_RECORD.unpack_from(view, end)
    locator = end - zr.ZIP64_LOCATOR.size
    if locator >= 0 and view[locator : locator + 4] == zr.ZIP64_LOCATOR_MARK:
        return _find_zip64_directory(path, view, locator)
    if zr.FULL_16 in (disk, start_disk, disk_count, count) or zr.FULL_32 in (size, start):
        raise ArchiveError(path, None, "the zip64 records are missing", "them before the end record")
    if disk or start_disk or disk_count != count:
        raise ArchiveError(path, None, "the archive spans several disks", "one file")
    return _checked_directory(path, _Directory(start, start + size, count), end)


def _find_end_record(path: Path, view: memoryview) -> int:
    """Return the offset of the last end record whose comment ends with the file."""
    window = max(0, len(view) - zr.END_RECORD.size - MAX_COMMENT)
    tail = bytes(view[window:])
    at = tail.rfind(zr.END_MARK)
    while at >= 0:
        if at + zr.END_RECORD.size <= len(tail):
            comment = zr.END_RECORD.unpack_from(tail, at)[-1]
            if at + zr.END_RECORD.size + comment == len(tail):
                return window + at
        at = tail.rfind(zr.END_MARK, 0, at)
    if view[:4] in (zr.LOCAL_MARK, zr.ZIP64_END_MARK):
        raise ArchiveError(path, None, "the archive is truncated", "an end record in the file's last bytes")
    raise ArchiveError(path, None, "not a zip archive", "an end record in the file's last bytes")


def _find_zip64_directory(path: Path, view: memoryview, locator: int) -> _Directory:
    _, disk, record, disks = zr.ZIP64_LOCATOR.unpack_from(view, locator)
    if disk or disks != 1:
        raise ArchiveError(path, None, "the archive spans several disks", "one file")
    if record + zr.ZIP64_END_RECORD.size > locator or view[record : record + 4] != zr.ZIP64_END_MARK:
        raise ArchiveError(path, None, f"no zip64 end record at offset {record}", "it before its locator")
    fields = zr.ZIP64_END_RECORD.unpack_from(view, record)
    length, disk, start_disk, disk_count, count, size, start = fields[1], *fields[4:]
    if length != locator - record - 12:
        raise ArchiveError(path, None, f"a zip64 end record of {length} bytes", f"{locator - record - 12}")
    if disk or start_disk or disk_count != count:
        raise ArchiveError(path, None, "the archive spans several disks", "one file")
    return _checked_directory(path, _Directory(start, start + size, count), record)


def _checked_directory(path: Path, directory: _Directory, limit: int) -> _Directory:
    if directory.end != limit:
        problem = f"a directory from byte {directory.start} to {directory.end}"
        raise ArchiveError(path, None, problem, f"it to end at byte {limit}, where the end records begin")
    room = (directory.end - directory.start) // zr.CENTRAL_HEADER.size
    if directory.count > min(room, MAX_ENTRIES):
        problem = f"{directory.count} entries in a directory with room for {room}"
        raise ArchiveError(path, None, problem, f"at most {min(room, MAX_ENTRIES)}")
    return directory


def _read_directory(path: Path, view: memoryview, directory: _Directory) -> list[_Entry]:
    entries: dict[str, _Entry] = {}
    at = directory.start
    while at < directory.end:
        if at + zr.CENTRAL_HEADER.size > directory.end or view[at : at + 4] != zr.CENTRAL_MARK:
            raise ArchiveError(path, None, f"no directory entry at byte {at}", f"{directory.count} entries")
        lengths = zr.CENTRAL_HEADER.unpack_from(view, at)[10:13]
        following = at + zr.CENTRAL_HEADER.size + sum(lengths)
        if following > directory.end:
            raise ArchiveError(
                path, None, f"the directory entry at byte {at} is cut off", f"{sum(lengths)} bytes"
            )
        entry = _read_central_header(path, view, at)
        if entry.name in entries:
            raise ArchiveError(path, entry.name, "the archive has this entry twice", "unique names")
        entries[entry.name] = entry
        at = following
    if len(entries) != directory.count:
        raise ArchiveError(
            path, None, f"{len(entries)} directory entries", f"{directory.count}, as the end record says"
        )
    return list(entries.values())


def _read_central_header(path: Path, view: memoryview, at: int) -> _Entry:
    fields = zr.CENTRAL_HEADER.unpack_from(view, at)
    flags, method, checksum, packed, size, name_length, extra_length = *fields[3:5], *fields[7:12]
    disk, header_start = fields[13], fields[16]
    at += zr.CENTRAL_HEADER.size
    name = _decode_name(path, bytes(view[at : at + name_length]))
    _check_stored(path, name, flags, method)
    extra = bytes(view[at + name_length : at + name_length + extra_length])
    size, packed, header_start, disk = _widen(path, name, extra, size, packed, header_start, disk)
    if packed != size:
        raise ArchiveError(path, name, f"{packed} bytes packed and {size} unpacked", "the same number")
    if disk:
        raise ArchiveError(path, name, f"the entry is on disk {disk}", "one file")
    return _Entry(name, flags, checksum, size, header_start)


def _decode_name(path: Path, name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise ArchiveError(path, repr(name)[2:-1], "the name is not UTF-8", "UTF-8") from error


def _check_stored(path: Path, name: str, flags: int, method: int) -> None:
    if flags & zr.ENCRYPTED_FLAGS:
        raise ArchiveError(path, name, "the entry is encrypted", "a plain one")
    if method:
        raise ArchiveError(
            path, name, f"the entry is compressed (method {method})", "a stored one (method 0)"
        )


def _widen(
    path: Path, name: str, extra: bytes, size: int, packed: int, header_start: int = 0, disk: int = 0
) -> tuple[int, int, int, int]:
    """Replace the fields that have all bits set by those of the zip64 extra field, in the field's own order."""
    fields = [
        (size, zr.FULL_32, 8),
        (packed, zr.FULL_32, 8),
        (header_start, zr.FULL_32, 8),
        (disk, zr.FULL_16, 4),
    ]
    if not any(value == full for value, full, _ in fields):
        return size, packed, header_start, disk
    wide = _find_zip64_extra(path, name, extra)
    values = []
    for value, full, width in fields:
        if value != full:
            values.append(value)
            continue
        if len(wide) < width:
            raise ArchiveError(
                path, name, "the zip64 extra field is too short", "a value for each field it replaces"
            )
        values.append(int.from_bytes(wide[:width], "little"))
        wide = wide[width:]
    return values[0], values[1], values[2], values[3]


def _find_zip64_extra(path: Path, name: str, extra: bytes) -> bytes:
    while len(extra) >= 4:
        kind, length = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
        if kind == zr.ZIP64_EXTRA and length <= len(extra) - 4:
            return extra[4 : 4 + length]
        extra = extra[4 + length :]
    raise ArchiveError(path, name, "the zip64 extra field is missing", "it, as a field has all bits set")


def _check_local_header(path: Path, view: memoryview, entry: _Entry) -> _Entry:
    """Check that the header before the data agrees with the directory, and find where the data begins."""
    at = entry.header_start
    if at + zr.LOCAL_HEADER.size > len(view) or view[at : at + 4] != zr.LOCAL_MARK:
        raise ArchiveError(path, entry.name, f"no entry at byte {at}", "its header, as the directory says")
    fields = zr.LOCAL_HEADER.unpack_from(view, at)
    flags, method, checksum, packed, size, name_length, extra_length = *fields[2:4], *fields[6:11]
    at += zr.LOCAL_HEADER.size
    entry.data_start = at + name_length + extra_length
    if entry.data_end > len(view):
        raise ArchiveError(
            path, entry.name, f"the data ends at byte {entry.data_end}", f"at most {len(view)}"
        )
    if _decode_name(path, bytes(view[at : at + name_length])) != entry.name:
        raise ArchiveError(path, entry.name, "the entry's header has another name", "that of the directory")
    _check_stored(path, entry.name, flags, method)
    extra = bytes(view[at + name_length : entry.data_start])
    size, packed, _, _ = _widen(path, entry.name, extra, size, packed)
    later = flags & zr.DESCRIPTOR_FLAG
    for mine, wanted in ((size, entry.size), (packed, entry.size), (checksum, entry.checksum)):
        if mine != wanted and not (later and mine == 0):
            raise ArchiveError(
                path, entry.name, "size or checksum in the entry's header differ", "those of the directory"
            )
    return entry


def _check_coverage(path: Path, entries: list[_Entry], end: int) -> None:
    """Check that the entries fill the file up to the directory, each byte in one entry."""
    covered, after_descriptor = 0, False
    for entry in sorted(entries, key=lambda entry: entry.header_start):
        _check_gap(path, entry.name, entry.header_start - covered, after_descriptor)
        covered, after_descriptor = entry.data_end, bool(entry.flags & zr.DESCRIPTOR_FLAG)
    _check_gap(path, None, end - covered, after_descriptor)


def _check_gap(path: Path, name: str | None, gap: int, after_descriptor: bool) -> None:
    if gap < 0:
        what = "the entry" if name else "the directory"
        raise ArchiveError(
            path, name, f"{what} overlaps the entry before it by {-gap} bytes", "entries side by side"
        )
    if gap and not (after_descriptor and gap in zr.DESCRIPTOR_LENGTHS):
        what = "the entry" if name else "the directory"
        raise ArchiveError(path, name, f"{gap} bytes before {what} belong to none", "entries side by side")
