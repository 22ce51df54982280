"""Writes `.npz` files in pieces, of which large arrays are pieces of their own."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO

import numpy as np

from engine import Array

PIECE_BYTES = 1 << 20
"""Maximum bytes of an array that are one piece."""
_JOINED_BYTES = 1 << 16
"""Longest piece that is joined to those before it: to copy it costs less than to send it."""


class _Pieces:
    """What a zip file is written to: a list of pieces, which are never copied into one."""

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray | memoryview] = []
        self._last: bytearray | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Take bytes; those of a view must not change before they are sent."""
        if len(data) > _JOINED_BYTES:
            self._pieces.append(data)
            self._last = None
        elif self._last is None:
            self._last = bytearray(data)
            self._pieces.append(self._last)
        else:
            self._last += data
        return len(data)

    def flush(self) -> None:
        """Do nothing, as zip files expect."""

    def close(self) -> None:
        """Do nothing, as zip files expect."""

    def take(self) -> list[bytes | memoryview]:
        """Return the pieces."""
        return [bytes(piece) if isinstance(piece, bytearray) else piece for piece in self._pieces]


class NpzWriter:
    """Writes an uncompressed `.npz`: one entry after the other, then `close`."""

    def __init__(self) -> None:
        self._pieces = _Pieces()
        self._archive = zipfile.ZipFile(self._pieces, "w")

    def write_arrays(self, arrays: Mapping[str, Array]) -> None:
        """Write arrays of numbers by name; they must not change before the file is sent.

        The GIL is not held for the length of an array.
        """
        for name, array in arrays.items():
            with self._archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                whole = np.ascontiguousarray(array).reshape(array.shape)
                head = BytesIO()
                np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(whole))
                entry.write(head.getvalue())
                for piece in _split(whole):
                    entry.write(piece)

    def write_text(self, name: str, text: bytes) -> None:
        """Write an entry that is no array."""
        self._archive.writestr(name, text)

    def close(self) -> Sequence[bytes | memoryview]:
        """End the file; returns its pieces."""
        self._archive.close()
        return self._pieces.take()


def _split(array: Array) -> Iterator[memoryview]:
    """Yield the bytes of a contiguous array, some at a time."""
    if not array.size:
        return
    data = array.reshape(-1).view(np.uint8).data
    for start in range(0, len(data), PIECE_BYTES):
        yield data[start : start + PIECE_BYTES]
