"""Reads `.npz` files. Every size is checked in a header before anything of that size is unpacked."""

import struct
import zipfile
import zlib
from io import BytesIO
from typing import Any

from engine import Array
from service.codec.inflation import check_memory
from service.codec.npy import MAX_HEADER, read_header, read_npy
from service.config.limits import RAISE_BODY_BYTES, Limits, too_large
from service.decoding import Task, large_body_decoder
from service.decoding.shared_file import room_for
from service.errors import ServiceError

MAX_ENTRIES = 256
LARGE_BYTES = 8 << 20
"""Maximum bytes of compressed arrays, unpacked, that are unpacked where they are."""
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
        ServiceError: 400 `invalid_npz` or `invalid_npy`, 413 `tensor_too_large` or `body_too_large`, 422
            `decoding_too_long`, 503 `decoder_failed`.
        MemoryError: there is no memory to unpack it.
        NeedsDecoderError: it is large, and this thread leaves those to others.
    """
    # the zip reader makes an object of every record before they can be counted
    if body.count(_DIRECTORY_RECORD) > MAX_ENTRIES:
        raise _invalid(f"has more than {MAX_ENTRIES} entries")
    try:
        with zipfile.ZipFile(BytesIO(body)) as archive:
            entries = archive.infolist()
            unpacked = sum(entry.file_size for entry in entries)
            if unpacked > limits.body_bytes:
                raise too_large(
                    "body_too_large",
                    "the unpacked npz",
                    unpacked,
                    limits.body_bytes,
                    "bytes",
                    RAISE_BODY_BYTES,
                )
            packed = sum(entry.file_size for entry in entries if entry.compress_type != zipfile.ZIP_STORED)
            if packed <= LARGE_BYTES or large_body_decoder() is None:
                return _read_entries(archive, limits)
    except _ZIP_ERRORS as error:
        if isinstance(error, zlib.error):
            check_memory(error)
        raise _invalid(f"cannot be unpacked: {error}") from error
    return _read_remotely(body, unpacked, limits)


def read_body(data: bytes, arguments: dict[str, Any]) -> tuple[list[str], list[Array]]:
    """Read an archive; in the decoder process. Returns the names of the arrays, and the arrays."""
    arrays = read_npz(data, Limits(**arguments))
    return list(arrays), list(arrays.values())


def _read_remotely(body: bytes, unpacked: int, limits: Limits) -> dict[str, Array]:
    decoder = large_body_decoder()
    if decoder is None:
        raise RuntimeError("the thread has no decoder")
    task = Task(
        function=(__name__, read_body.__name__),
        data=body,
        arguments={"body_bytes": limits.body_bytes, "tensor_elements": limits.tensor_elements},
        room=room_for(MAX_ENTRIES, unpacked),
        memory=3 * unpacked + 2 * len(body),
        accepts=lambda names, arrays: (
            isinstance(names, list)
            and len(names) == len(arrays)
            and all(isinstance(name, str) for name in names)
        ),
    )
    [(names, arrays)] = decoder.run([task], limits.decode_seconds, "the npz body takes")
    return dict(zip(names, arrays, strict=True))


def _read_entries(archive: zipfile.ZipFile, limits: Limits) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for entry in archive.infolist():
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
        return read_npy(start + file.read(), limits, place)


def _invalid(problem: str) -> ServiceError:
    return ServiceError(400, "invalid_npz", f"the npz body {problem}"[:300], {"expected": "an npz file"})
