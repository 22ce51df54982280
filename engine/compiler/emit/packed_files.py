"""Weight cache: packed weights on disk, mapped into memory and shared by processes, so that a start packs nothing.

A file is written under another name, is complete when it gets its own, and is never written again. A mapping stays
valid if the file is deleted or replaced. Only truncating the file in place, which needs its owner's rights, kills the
processes that read it.
"""

import hashlib
import json
import mmap
import zlib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from math import prod

import numpy as np

from engine.compiler.emit.code_store import CodeStore, code_folder, code_key
from engine.compiler.memory.alignment import ALIGNMENT
from engine.compiler.memory.weights import PackedArrays, Packing
from engine.dtypes import Array
from engine.pnnx.mapped_pages import sha256_of

WEIGHTS = ".weights"
"""Suffix of the cached files."""
MAX_BYTES = 3 << 30
"""Maximum bytes of cached packed weights."""
LEAST_BYTES = 1 << 16
"""Minimum bytes of cached weights: fewer are packed faster than a file is read."""

_HEADER_BYTES = 4096
_KINDS = "fiu"
_PLAIN = (int, float, str, Enum, type(None))


class PackedFiles:
    """Packed weights by a digest of their source. Thread-safe and multi-process-safe.

    Args:
        store: the cache on disk.
    """

    def __init__(self, store: CodeStore) -> None:
        self._store = store

    @property
    def store(self) -> CodeStore:
        """The cache folder."""
        return self._store

    def key(self, kernel: Packing, weight: Array, bias: Array | None) -> str | None:
        """Return the key of weights and bias, packed for a kernel; None if they are not cached.

        It is made of the bytes of both, of all that is known of the kernel, and of the engine's source.
        """
        if not self._store.is_on or weight.nbytes < LEAST_BYTES or not _is_identified_by_repr(kernel):
            return None
        sources = [digest_of(weight), *([] if bias is None else [digest_of(bias)])]
        return code_key(f"{type(kernel).__module__} {kernel!r} {kernel.layout!r} {sources}")

    def load(self, key: str) -> PackedArrays | None:
        """Return weights and bias that were saved for a key, read-only; None where there are none to be trusted."""
        mapped = self._store.map(f"{key}{WEIGHTS}")
        return None if mapped is None else _read(mapped, is_checked=True)

    def save(self, key: str, weight: Array, bias: Array) -> PackedArrays:
        """Store packed weights and bias, if possible; returns them with their digest.

        They lie in the file then, as in later processes, which share the memory with this one.
        """
        arrays = (weight, bias)
        digest = hashlib.sha256(" ".join(map(digest_of, arrays)).encode()).hexdigest()
        header = {
            "digest": digest,
            "checksum": _checksum(map(_bytes_of, arrays)),
            "arrays": [(array.dtype.str, array.shape) for array in arrays],
        }
        parts: list[bytes | memoryview] = [_seal(header)]
        for array in arrays:
            parts += [_bytes_of(array), bytes(-array.nbytes % ALIGNMENT)]
        self._store.save_parts(f"{key}{WEIGHTS}", parts)
        mapped = self._store.map(f"{key}{WEIGHTS}")
        # the bytes were written a moment ago; reading them again would take memory beside those that they were made of
        written = None if mapped is None else _read(mapped, is_checked=False)
        return written or PackedArrays(weight, bias, digest)


@lru_cache(maxsize=1)
def packed_files() -> PackedFiles:
    """Return the packed weights of this process, in the folder that its environment names at first."""
    folder = code_folder()
    return PackedFiles(CodeStore(None if folder is None else folder / "weights", MAX_BYTES))


def _seal(header: object) -> bytes:
    """Return the bytes of a header, after its own checksum."""
    text = json.dumps(header).encode()
    return (hashlib.sha256(text).digest() + text).ljust(_HEADER_BYTES, b" ")


def _read(mapped: mmap.mmap, *, is_checked: bool) -> PackedArrays | None:
    """Return the arrays of a file; None where its head, or if checked anything in it, is not as it was written."""
    digest, text = mapped[:32], mapped[32:_HEADER_BYTES].rstrip(b" ")
    if hashlib.sha256(text).digest() != digest:
        return None
    header = json.loads(text)
    arrays, places, start = [], [], _HEADER_BYTES
    for name, shape in header["arrays"]:
        dtype = np.dtype(name)
        size = prod(shape) * dtype.itemsize
        if dtype.kind not in _KINDS or start + size > len(mapped):
            return None
        arrays.append(np.frombuffer(mapped, dtype, prod(shape), start).reshape(shape))
        places.append(memoryview(mapped)[start : start + size])
        start += size + -size % ALIGNMENT
    if len(arrays) != 2 or (is_checked and _checksum(places) != header["checksum"]):
        return None
    return PackedArrays(arrays[0], arrays[1], header["digest"])


def _checksum(parts: Iterable[memoryview]) -> int:
    """Return the CRC-32 of all bytes: against damage it does as well as a digest, in half the time."""
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum


def digest_of(array: Array) -> str:
    """Return the identity of an array: the same bytes in another shape are other weights."""
    digest = sha256_of(array) or hashlib.sha256(_bytes_of(array)).hexdigest()
    return f"{array.shape} {array.dtype.str} {digest}"


def _bytes_of(array: Array) -> memoryview:
    """Return the elements row by row."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _is_identified_by_repr(value: object) -> bool:
    """Return whether a value's text identifies it: numbers, text, and dataclasses of the engine's."""
    if isinstance(value, tuple):
        return all(map(_is_identified_by_repr, value))
    if is_dataclass(value) and type(value).__module__.startswith("engine."):
        parts = fields(value)
        return all(part.repr and _is_identified_by_repr(getattr(value, part.name)) for part in parts)
    return isinstance(value, _PLAIN)
