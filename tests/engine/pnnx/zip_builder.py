"""Builds zip archives field by field, so that any field can be set wrong."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.pnnx import zip_records as zr

Fields = dict[str, int]


@dataclass(frozen=True)
class Member:
    """One entry. `central` and `local` replace fields of its headers; `before` and `after` are stray bytes."""

    name: str | bytes
    data: bytes
    central: Fields = field(default_factory=dict)
    local: Fields = field(default_factory=dict)
    central_extra: bytes = b""
    local_extra: bytes = b""
    before: bytes = b""
    after: bytes = b""

    @property
    def raw_name(self) -> bytes:
        return self.name if isinstance(self.name, bytes) else self.name.encode()


def zip64_extra(*values: int) -> bytes:
    body = b"".join(value.to_bytes(8, "little") for value in values)
    return zr.ZIP64_EXTRA.to_bytes(2, "little") + len(body).to_bytes(2, "little") + body


def local_record(member: Member) -> bytes:
    size, name = len(member.data), member.raw_name
    header = zr.LocalHeader(
        zr.LOCAL_SIGNATURE, 0, 0, zlib.crc32(member.data), size, size, len(name), len(member.local_extra)
    )
    header = header._replace(**member.local)  # type: ignore[arg-type]  # the mark is never among them
    return zr.LOCAL_HEADER.pack(*header) + name + member.local_extra + member.data


def central_record(member: Member, start: int) -> bytes:
    size, name, extra = len(member.data), member.raw_name, member.central_extra
    checksum = zlib.crc32(member.data)
    header = zr.CentralHeader(
        zr.CENTRAL_SIGNATURE, 0, 0, checksum, size, size, len(name), len(extra), 0, 0, start
    )
    header = header._replace(**member.central)  # type: ignore[arg-type]  # the mark is never among them
    return zr.CENTRAL_HEADER.pack(*header) + name + extra


def build(members: Sequence[Member], end: Fields | None = None, comment: bytes = b"") -> bytes:
    """Return a classic archive; `end` replaces fields of its end record."""
    body, directory = _body(members)
    count, length = len(members), len(comment)
    record = zr.EndRecord(zr.END_SIGNATURE, 0, 0, count, count, len(directory), len(body), length)
    record = record._replace(**end or {})  # type: ignore[arg-type]  # the mark is never among them
    return body + directory + zr.END_RECORD.pack(*record) + comment


def build_zip64(members: Sequence[Member], end: Fields | None = None, locator: Fields | None = None) -> bytes:
    """Return an archive with zip64 end records, as current releases of `pnnx` write; `end` is the 64-bit one."""
    body, directory = _body(members)
    count, size, start = len(members), len(directory), len(body)
    wide = zr.Zip64EndRecord(zr.ZIP64_END_SIGNATURE, 44, 45, 45, 0, 0, count, count, size, start)
    where = zr.Zip64Locator(zr.ZIP64_LOCATOR_SIGNATURE, 0, start + size, 1)
    full = (zr.FULL_16,) * 4 + (zr.FULL_32,) * 2
    wide = wide._replace(**end or {})  # type: ignore[arg-type]  # the mark is never among them
    where = where._replace(**locator or {})  # type: ignore[arg-type]  # the mark is never among them
    records = zr.ZIP64_END_RECORD.pack(*wide) + zr.ZIP64_LOCATOR.pack(*where)
    return body + directory + records + zr.END_RECORD.pack(zr.END_SIGNATURE, *full, 0)


def zip64_member(name: str, data: bytes, header_start: int) -> Member:
    """Return an entry whose sizes and offset are all in zip64 extra fields."""
    full = {"size": zr.FULL_32, "packed": zr.FULL_32}
    return Member(
        name,
        data,
        central=full | {"header_start": zr.FULL_32},
        local=full,
        central_extra=zip64_extra(len(data), len(data), header_start),
        local_extra=zip64_extra(len(data), len(data), header_start),
    )


def _body(members: Sequence[Member]) -> tuple[bytes, bytes]:
    body, directory = b"", b""
    for member in members:
        body += member.before
        directory += central_record(member, len(body))
        body += local_record(member) + member.after
    return body, directory
