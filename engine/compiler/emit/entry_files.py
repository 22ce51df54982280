"""Weights of models as in their `.bin`, cached in a mappable file of the user's own.

A model's own file may be overwritten while its weights are in use, which would kill a process that maps it. An
immutable copy can be mapped: then only weights that are read take memory, shared between processes. It is found by a
digest of the model's file, which is read but not held in memory.
"""

import hashlib
import json
import mmap
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.packed_files import packed_files
from engine.compiler.memory.alignment import ALIGNMENT
from engine.pnnx.mapped_pages import checksum_of, in_pieces, set_sha256

ENTRIES = ".entries"
"""Suffix of the cached files."""
_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_HEAD_BYTES = _DIGEST_BYTES + _LENGTH_BYTES
_ROW = 4
"""Values of an entry in the head: its name, its bytes, and their sums."""


class EntryFiles:
    """Entries of archives by the digests of these. Thread-safe and multi-process-safe.

    Args:
        store: the cache on disk.
    """

    def __init__(self, store: CodeStore) -> None:
        self._store = store

    @property
    def is_on(self) -> bool:
        """Whether caching is enabled."""
        return self._store.folder is not None

    def load(self, digest: str) -> dict[str, memoryview] | None:
        """Return the entries of an archive, mapped; None where there are none to be trusted."""
        mapped = self._store.map(f"{digest}{ENTRIES}")
        if mapped is None:
            return None
        places = _places(mapped)
        whole = memoryview(mapped)
        entries = {name: whole[place.start : place.start + place.size] for name, place in places.items()}
        for name, data in entries.items():
            if checksum_of(data) != places[name].checksum:
                return None
        set_sha256(mapped, {(place.start, place.size): place.digest for place in places.values()})
        return entries if places else None

    def save(self, digest: str, entries: Mapping[str, memoryview]) -> None:
        """Store the entries of an archive, if possible."""
        self._store.save_parts(f"{digest}{ENTRIES}", _parts(entries))

    def copy(self, parts: Iterable[bytes]) -> tuple[str, memoryview] | None:
        """Return the SHA-256 of bytes, and a mapped copy in a file without a name; None where there can be none."""
        digest = hashlib.sha256()
        mapped = self._store.copy(_feeding(digest.update, parts))
        return None if mapped is None else (digest.hexdigest(), memoryview(mapped))


def _feeding(take: Callable[[bytes], object], parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        take(part)
        yield part


def _parts(entries: Mapping[str, memoryview]) -> Iterator[bytes | memoryview]:
    """Yield what a file consists of, one after the other."""
    sizes = [(name, data.nbytes, *_sums_of(data)) for name, data in entries.items()]
    text = json.dumps(sizes).encode()
    head = hashlib.sha256(text).digest() + len(text).to_bytes(_LENGTH_BYTES, "little") + text
    yield head + bytes(-len(head) % ALIGNMENT)
    for data in entries.values():
        yield from in_pieces(data)
        yield bytes(-data.nbytes % ALIGNMENT)


def _sums_of(data: memoryview) -> tuple[int, str]:
    """Return the CRC-32 of bytes and their SHA-256."""
    checksum, digest = 0, hashlib.sha256()
    for piece in in_pieces(data):
        checksum = zlib.crc32(piece, checksum)
        digest.update(piece)
    return checksum, digest.hexdigest()


class _Place(NamedTuple):
    """Where an entry lies in a file, and the sums of its bytes."""

    start: int
    size: int
    checksum: int
    digest: str


def _places(mapped: mmap.mmap) -> dict[str, _Place]:
    """Return the places of all entries; none if the head of the file is damaged."""
    length = int.from_bytes(mapped[_DIGEST_BYTES:_HEAD_BYTES], "little")
    text = mapped[_HEAD_BYTES : _HEAD_BYTES + min(length, len(mapped))]
    if hashlib.sha256(text).digest() != mapped[:_DIGEST_BYTES]:
        return {}
    places: dict[str, _Place] = {}
    start = _HEAD_BYTES + length
    rows = json.loads(text)
    if any(len(row) != _ROW for row in rows):  # an earlier version wrote it
        return {}
    for name, size, checksum, sha256 in rows:
        start += -start % ALIGNMENT
        if start + size > len(mapped):
            return {}
        places[name] = _Place(start, size, checksum, sha256)
        start += size
    return places


@lru_cache(maxsize=1)
def entry_files() -> EntryFiles:
    """Return the cache of entries of this process, in the folder of packed weights and within its limits."""
    return EntryFiles(packed_files().store)
