"""Reads the entries of a zip archive: their directory headers, checked against those before the data."""

from dataclasses import dataclass
from pathlib import Path

from engine.errors import ArchiveError
from engine.pnnx import zip_records as zr
from engine.pnnx.zip_directory import Directory


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its directory record, and the positions of header and data in the file."""

    name: str
    flags: int
    checksum: int
    header_start: int
    data_start: int
    data_end: int


def read_entries(path: Path, view: memoryview, directory: Directory) -> list[Entry]:
    """Return the entries in directory order, each known to be stored and to lie within the file.

    Raises:
        ArchiveError: the directory is malformed, or an entry's header disagrees with it.
    """
    entries: dict[str, Entry] = {}
    at = directory.start
    while at < directory.end:
        header = _read_central_header(path, view, at, directory)
        at += zr.CENTRAL_HEADER.size
        name = _decode_name(path, view[at : at + header.name_length])
        if name in entries:
            raise ArchiveError(path, name, "the archive has this entry twice", "unique names")
        at += header.name_length
        entries[name] = _read_entry(path, view, name, header, view[at : at + header.extra_length])
        at += header.extra_length + header.comment_length
    if len(entries) != directory.count:
        expected = f"{directory.count}, as the end record says"
        raise ArchiveError(path, None, f"{len(entries)} directory entries", expected)
    return list(entries.values())


def _read_central_header(path: Path, view: memoryview, at: int, directory: Directory) -> zr.CentralHeader:
    if at + zr.CENTRAL_HEADER.size > directory.end or view[at : at + 4] != zr.CENTRAL_SIGNATURE:
        raise ArchiveError(path, None, f"no directory entry at byte {at}", f"{directory.count} of them")
    header = zr.CentralHeader._make(zr.CENTRAL_HEADER.unpack_from(view, at))
    length = header.name_length + header.extra_length + header.comment_length
    if at + zr.CENTRAL_HEADER.size + length > directory.end:
        raise ArchiveError(path, None, f"the directory entry at byte {at} is cut off", f"{length} bytes more")
    return header


def _read_entry(
    path: Path, view: memoryview, name: str, header: zr.CentralHeader, extra: memoryview
) -> Entry:
    _check_stored(path, name, header)
    wide = _Zip64Extra(path, name, extra)
    size, packed, header_start = (
        wide.widen(header.size),
        wide.widen(header.packed),
        wide.widen(header.header_start),
    )
    if packed != size:
        raise ArchiveError(path, name, f"{packed} bytes packed and {size} unpacked", "the same number")
    if wide.widen(header.disk, zr.FULL_16, 4) != 0:
        raise ArchiveError(path, name, "the entry is on another disk", "one file")
    data_start = _check_local_header(path, view, name, header, header_start, size)
    return Entry(
        name=name,
        flags=header.flags,
        checksum=header.checksum,
        header_start=header_start,
        data_start=data_start,
        data_end=data_start + size,
    )


def _check_local_header(
    path: Path, view: memoryview, name: str, central: zr.CentralHeader, at: int, size: int
) -> int:
    """Check that the header before the data agrees with the directory; return where the data begins."""
    if at + zr.LOCAL_HEADER.size > len(view) or view[at : at + 4] != zr.LOCAL_SIGNATURE:
        raise ArchiveError(path, name, f"no entry at byte {at}", "its header there, as the directory says")
    local = zr.LocalHeader._make(zr.LOCAL_HEADER.unpack_from(view, at))
    name_start = at + zr.LOCAL_HEADER.size
    extra_start = name_start + local.name_length
    data_start = extra_start + local.extra_length
    if data_start + size > len(view):
        raise ArchiveError(path, name, f"the data ends at byte {data_start + size}", f"at most {len(view)}")
    if view[name_start:extra_start] != name.encode():
        raise ArchiveError(path, name, "the entry's own header has another name", "that of the directory")
    _check_stored(path, name, local)
    wide = _Zip64Extra(path, name, view[extra_start:data_start])
    later = bool(local.flags & zr.DESCRIPTOR_FLAG)
    own = wide.widen(local.size), wide.widen(local.packed), local.checksum
    for found, wanted in zip(own, (size, size, central.checksum), strict=True):
        if found != wanted and not (later and found == 0):
            problem = f"size or checksum {found} in the entry's own header"
            raise ArchiveError(path, name, problem, f"{wanted}, as the directory says")
    return data_start


def _check_stored(path: Path, name: str, header: zr.CentralHeader | zr.LocalHeader) -> None:
    if header.flags & zr.ENCRYPTED_FLAGS:
        raise ArchiveError(path, name, "the entry is encrypted", "a plain one")
    if header.method:
        raise ArchiveError(path, name, f"the entry is compressed (method {header.method})", "a stored one")


def _decode_name(path: Path, name: memoryview) -> str:
    try:
        return str(name, "utf-8")
    except UnicodeDecodeError as error:
        raise ArchiveError(path, repr(bytes(name))[2:-1], "the name is not UTF-8", "UTF-8") from error


class _Zip64Extra:
    """The wide values of a header's zip64 extra field, in the order of the fields that they replace."""

    def __init__(self, path: Path, name: str, extra: memoryview) -> None:
        self._path = path
        self._name = name
        self._rest = self._find(bytes(extra))

    @staticmethod
    def _find(extra: bytes) -> bytes:
        while len(extra) >= 4:
            kind, length = int.from_bytes(extra[:2], "little"), int.from_bytes(extra[2:4], "little")
            if kind == zr.ZIP64_EXTRA:
                return extra[4 : 4 + length]
            extra = extra[4 + length :]
        return b""

    def widen(self, value: int, full: int = zr.FULL_32, width: int = 8) -> int:
        """Return `value`, or the next wide value where all bits of it are set."""
        if value != full:
            return value
        if len(self._rest) < width:
            problem = "the zip64 extra field is missing or too short"
            raise ArchiveError(
                self._path, self._name, problem, "a wide value for each field with all bits set"
            )
        wide, self._rest = int.from_bytes(self._rest[:width], "little"), self._rest[width:]
        return wide
