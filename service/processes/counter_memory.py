"""Memory that counters of a process lie in, which outlives the process and which all processes read.

It holds rows of numbers, each under a name, and one document. Only the process whose slot it belongs to writes; when
that has ended, the next process of the slot goes on with what it finds. So a counter is never lost and never goes back,
however a process ends. Layout, in native byte order: bytes of rows that are valid; the rows, each its length of name
and number of numbers (two 32-bit integers), its name padded to 8 bytes, its numbers (64-bit floats). Each of the last
two quarters has a place for the document: how many were written up to it, its length, a CRC-32 of these and of its
bytes, its bytes. A new one goes to the place of the older one: who reads meanwhile, or finds that a process was ended
in the middle, has the last one.
"""

import json
import logging
import mmap
import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from threading import Lock

from service.processes.anonymous_memory import make_memory

BYTES = 32 << 20
"""Bytes of address space; only what is written takes memory."""
_DOCUMENT = BYTES // 2
_DOCUMENTS = (_DOCUMENT, _DOCUMENT + BYTES // 4)
_HEAD = 8
_ROW = struct.Struct("=II")
_SEAL = struct.Struct("=QQQ")
_MOST_BYTES = BYTES // 4 - _SEAL.size
"""The longest document."""
_READINGS = 8
"""How often a document is read that is replaced twice meanwhile."""
_NUMBER_BYTES = 8

Group = tuple[str, ...]
Name = tuple[Group, str]
"""A row is one member of a group."""

_logger = logging.getLogger(__name__)


def make_counter_memory() -> int:
    """Return the descriptor of a new memory, all zeros, that has no name and ends with the processes that hold it."""
    return make_memory("kuiper-counters", BYTES)


class CounterMemory:
    """One such memory. One thread writes; any thread may read, also in other processes.

    Args:
        descriptor: as `make_counter_memory` returned it.
    """

    def __init__(self, descriptor: int) -> None:
        self._bytes = memoryview(mmap.mmap(descriptor, BYTES))
        self._numbers: memoryview[float] = self._bytes.cast("d")
        self._sizes: memoryview[int] = self._bytes.cast("Q")
        self._rows: dict[Name, tuple[int, int]] = {}
        self._groups: dict[Group, list[str]] = {}
        self._read_until = _HEAD
        self._reading = Lock()
        self._publishing = Lock()
        self._is_full = False

    def write(self, name: Name, numbers: Sequence[float]) -> None:
        """Write a row; the first time, it is added."""
        place = self._rows.get(name) or self._add(name, len(numbers))
        if place is not None and place[1] == len(numbers):
            start, size = place
            self._numbers[start : start + size] = array("d", numbers)

    def row(self, name: Name, size: int) -> list[float] | None:
        """Return the numbers of a row; None where there is none of this size."""
        self._read_names()
        start, found = self._rows.get(name, (0, 0))
        return list(self._numbers[start : start + size]) if found == size else None

    def members(self, group: Group) -> list[str]:
        """Return the members of a group."""
        self._read_names()
        return list(self._groups.get(group, ()))

    def groups(self, kind: str) -> Iterator[Group]:
        """Yield the groups whose first part is this."""
        self._read_names()
        yield from [group for group in list(self._groups) if group[0] == kind]

    def publish(self, document: bytes) -> None:
        """Replace the document; one that is too large is left out. May be called on any thread of its process."""
        size = len(document)
        if size > _MOST_BYTES:
            return
        with self._publishing:
            number = 1 + max(found[0] for found in map(self._document_at, _DOCUMENTS))
            place = _DOCUMENTS[number % len(_DOCUMENTS)]
            start = place + _SEAL.size
            self._bytes[start : start + size] = document
            _SEAL.pack_into(self._bytes, place, number, size, _checksum(number, size, document))

    def published(self) -> bytes | None:
        """Return the last document; None where there is none."""
        for _ in range(_READINGS):
            number, document = max(map(self._document_at, _DOCUMENTS))
            if number:
                return document
            if not any(_SEAL.unpack_from(self._bytes, place)[0] for place in _DOCUMENTS):
                break
        return None

    def _document_at(self, place: int) -> tuple[int, bytes]:
        """Return a document and its number; 0 and no bytes where there is none, or it is being written."""
        number, size, checksum = _SEAL.unpack_from(self._bytes, place)
        start = place + _SEAL.size
        document = bytes(self._bytes[start : start + min(size, _MOST_BYTES)])
        return (number, document) if number and checksum == _checksum(number, size, document) else (0, b"")

    def _add(self, name: Name, size: int) -> tuple[int, int] | None:
        """Add a row, and return where its numbers are; None where the memory is full."""
        self._read_names()
        if name in self._rows:
            return self._rows[name]
        text = json.dumps(name).encode()
        text += b" " * (-len(text) % _NUMBER_BYTES)
        begin = self._read_until
        end = begin + _ROW.size + len(text) + size * _NUMBER_BYTES
        if end > _DOCUMENT:
            if not self._is_full:
                self._is_full = True
                _logger.warning(
                    "the memory for counters of several processes is full: further ones are not shown"
                )
            return None
        _ROW.pack_into(self._bytes, begin, len(text), size)
        self._bytes[begin + _ROW.size : begin + _ROW.size + len(text)] = text
        self._sizes[0] = end  # from now on, others see it
        self._read_names()
        return self._rows[name]

    def _read_names(self) -> None:
        """Take note of rows that were added since."""
        with self._reading:
            until = max(self._sizes[0], _HEAD)
            while self._read_until < until:
                begin = self._read_until
                length, size = _ROW.unpack_from(self._bytes, begin)
                start = begin + _ROW.size + length
                group, member = json.loads(bytes(self._bytes[begin + _ROW.size : start]))
                name = (tuple(group), member)
                self._rows[name] = (start // _NUMBER_BYTES, size)
                self._groups.setdefault(name[0], []).append(member)
                self._read_until = start + size * _NUMBER_BYTES


def _checksum(number: int, size: int, document: bytes) -> int:
    return zlib.crc32(document, number ^ size)
