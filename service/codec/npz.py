"""Reads `.npz` files. Every size is checked in a header before anything of that size is unpacked."""

import struct
import zipfile
import zlib
from io import BytesIO
from typing import IO

from engine import Array
from service.codec.inflation import check_memory
from service.codec.npy import MAX_HEADER, read_header, read_npy
from service.config.limits import Limits, too_large
from service.errors import ServiceError
from service.heavy_work import LIGHT_PACKED_BYTES, check_wanted, check_weight

MAX_ENTRIES = 256
_PIECE_BYTES = 1 << 18
"""Bytes of an entry that are unpacked at a time."""
_DIRECTORY_RECORD = b"PK\x01\x02"
_ENCRYPTED = 1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
)
"""Exceptions that the zip reader raises on damaged archives."""


def read_npz(body: bytes, limits: Limits) -> dict[str, Array]:
    """Read every array of a `.npz` file.

    Returns:
        Name, without `.npy`, -> array.

    Raises:
        ServiceError: 400 `invalid_npz` or `invalid_npy`, 413 `tensor_too_large` or `body_too_large`.
        MemoryError: there is no memory to unpack it.
    """
    # the zip reader makes an object of every record before they can be counted
    if body.count(_DIRECTORY_RECORD) > MAX_ENTRIES:
        raise _invalid(f"has more than {MAX_ENTRIES} entries")
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive:
            return _read_entries(archive, limits)
    except _ZIP_ERRORS as error:
        if isinstance(error, zlib.error):
            check_memory(error)
        raise _invalid(f"cannot be unpacked: {error}") from error


def _read_entries(archive: zipfile.ZipFile, limits: Limits) -> dict[str, Array]:
    entries = archive.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > limits.body_bytes:
        raise too_large("body_too_large", "the unpacked npz", unpacked, limits.body_bytes, "bytes")
    check_weight(unpacked, LIGHT_PACKED_BYTES)
    arrays: dict[str, Array] = {}
    for entry in entries:
        name = entry.filename.removesuffix(".npy")
        if name in arrays:
            raise _invalid(f"has two entries {name[:80]!r}")
        arrays[name] = _read_entry(archive, entry, limits)
    return arrays


def _read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: Limits) -> Array:
    place = f"entry {entry.filename[:80]!r}"
    if entry.compress_type not in _METHODS or entry.flag_bits & _ENCRYPTED:
        raise _invalid(f"has {place}, which is encrypted or packed by method {entry.compress_type}")
    with archive.open(entry) as file:
        start = file.read(MAX_HEADER)
        header = read_header(start, place)
        limits.check_shape(header.shape, place)
        if entry.file_size != header.size + header.data_bytes:
            size = f"{entry.file_size} bytes"
            raise _invalid(f"has {place} of {size}; its header asks for {header.size + header.data_bytes}")
        return read_npy(_unpacked(file, start, entry.file_size), limits, place)


def _unpacked(file: IO[bytes], start: bytes, size: int) -> bytes | bytearray:
    """Return an entry that is large in pieces: all at once, it would be copied twice under the interpreter's lock.

    Args:
        file: the entry.
        start: what was read of it.
        size: bytes of the entry.

    Raises:
        EOFError: it has fewer.
    """
    if size <= _PIECE_BYTES:
        return start + file.read()
    whole, filled = bytearray(size), len(start)
    whole[:filled] = start
    while filled < size:
        check_wanted()
        piece = file.read(min(_PIECE_BYTES, size - filled))
        if not piece:
            raise EOFError(f"the entry ends after {filled} of {size} bytes")
        whole[filled : filled + len(piece)] = piece
        filled += len(piece)
    return whole


def _invalid(problem: str) -> ServiceError:
    return ServiceError(400, "invalid_npz", f"the npz body {problem}"[:300], {"expected": "an npz file"})
