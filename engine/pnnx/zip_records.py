"""The records of a zip archive, as far as stored archives need them (APPNOTE.TXT 4.3, 4.5.3)."""

from struct import Struct
from typing import NamedTuple

LOCAL_SIGNATURE = b"PK\x03\x04"
CENTRAL_SIGNATURE = b"PK\x01\x02"
END_SIGNATURE = b"PK\x05\x06"
ZIP64_END_SIGNATURE = b"PK\x06\x06"
ZIP64_LOCATOR_SIGNATURE = b"PK\x06\x07"

# versions, times and attributes are of no use here
LOCAL_HEADER = Struct("<4s2x2H4x3I2H")
CENTRAL_HEADER = Struct("<4s4x2H4x3I4H6xI")
END_RECORD = Struct("<4s4H2IH")
ZIP64_END_RECORD = Struct("<4sQ2H2I4Q")
ZIP64_LOCATOR = Struct("<4sIQI")

ZIP64_EXTRA = 0x0001
ALIGNMENT_EXTRA = 0xD935
"""Extra field that Android's zipalign pads with: readers skip it."""

ENCRYPTED_FLAGS = 0x2041
"""Encrypted, strongly encrypted, headers encrypted."""
DESCRIPTOR_FLAG = 0x0008
"""Sizes and checksum follow the data, in one of `DESCRIPTOR_LENGTHS` bytes."""
DESCRIPTOR_LENGTHS = (12, 16, 20, 24)

FULL_16 = 0xFFFF
FULL_32 = 0xFFFFFFFF
"""All bits set: the value is in a zip64 record."""


class LocalHeader(NamedTuple):
    """Precedes an entry's name, extra field and data."""

    signature: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    name_length: int
    extra_length: int


class CentralHeader(NamedTuple):
    """Directory record before an entry's name, extra field and comment."""

    signature: bytes
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    name_length: int
    extra_length: int
    comment_length: int
    disk: int
    header_start: int


class EndRecord(NamedTuple):
    """Is at the end of the file, before an optional comment."""

    signature: bytes
    disk: int
    directory_disk: int
    entries_here: int
    entries: int
    size: int
    start: int
    comment_length: int


class Zip64EndRecord(NamedTuple):
    """The end record with 64-bit fields; `length` counts what follows it."""

    signature: bytes
    length: int
    version_made: int
    version: int
    disk: int
    directory_disk: int
    entries_here: int
    entries: int
    size: int
    start: int


class Zip64Locator(NamedTuple):
    """The record before the end record, with the position of the 64-bit one."""

    signature: bytes
    disk: int
    start: int
    disks: int
