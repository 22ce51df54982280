"""Masks as run lengths, as the COCO data set has them: https://github.com/cocodataset/cocoapi, `maskApi.c`.

Pixels are counted down the columns, from the left: first those outside the mask, then those inside it, and so on.
"""

from dataclasses import dataclass

import numpy as np

from engine import Array

_CHUNK_BITS = 5
_MAX_CHUNKS = 13
"""Chunks of five bits that a number of 64 bits takes."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of equal values in a map, down its columns.

    Attributes:
        height: rows of the map.
        width: its columns.
        starts: place of each run's first pixel, in ascending order.
        ends: place behind its last pixel.
        values: value of its pixels.
    """

    height: int
    width: int
    starts: Array
    ends: Array
    values: Array

    def counts(self, value: int) -> Array:
        """Return the run lengths of the mask of the pixels that have a value, those outside it first."""
        chosen = self.values == value
        starts, ends = self.starts[chosen], self.ends[chosen]
        bounds = np.concatenate(
            [[0], np.stack([starts, ends], axis=1).reshape(-1), [self.height * self.width]]
        )
        counts = np.diff(bounds)
        return counts if counts[-1] else counts[:-1]

    def area(self, value: int) -> int:
        """Return how many pixels have a value."""
        chosen = self.values == value
        return int(self.ends[chosen].sum() - self.starts[chosen].sum())

    def box(self, value: int) -> tuple[int, int, int, int]:
        """Return left, top, right and bottom of the pixels that have a value, of which there is one at least."""
        chosen = self.values == value
        starts, lasts = self.starts[chosen], self.ends[chosen] - 1
        is_tall = starts // self.height != lasts // self.height
        top = 0 if is_tall.any() else int((starts % self.height).min())
        bottom = self.height if is_tall.any() else int((lasts % self.height).max()) + 1
        return int(starts[0] // self.height), top, int(lasts[-1] // self.height) + 1, bottom


def find_runs(values: Array) -> Runs:
    """Return the runs of a map.

    Args:
        values: whole numbers or booleans (height, width), with at least one pixel.
    """
    height, width = values.shape
    flat = values.T.reshape(-1)
    starts = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    ends = np.append(starts[1:], flat.size)
    return Runs(height, width, starts, ends, flat[starts])


def encode_mask(mask: Array) -> dict[str, object]:
    """Return a mask, bool (height, width), as COCO's tools read it: `size`, height and width, and `counts`, a text."""
    return {"size": tuple(mask.shape), "counts": encode_counts(find_runs(mask).counts(1))}


def encode_counts(counts: Array) -> str:
    """Return run lengths as text, in chunks of five bits: from the fourth on what they differ from the last but one."""
    numbers = counts.astype(np.int64)
    numbers[3:] -= counts[1:-2]
    chunks = np.zeros((len(numbers), _MAX_CHUNKS), np.uint8)
    lengths = np.zeros(len(numbers), np.int64)
    is_open = np.ones(len(numbers), bool)
    for place in range(_MAX_CHUNKS):
        chunk = (numbers & 31).astype(np.uint8)
        numbers = numbers >> _CHUNK_BITS
        goes_on = np.where(chunk & 16, numbers != -1, numbers != 0)
        chunks[:, place] = chunk + 48 + np.where(goes_on, 32, 0)
        lengths += is_open
        is_open &= goes_on
        if not is_open.any():
            break
    return chunks[np.arange(_MAX_CHUNKS) < lengths[:, None]].tobytes().decode("ascii")


def decode_counts(text: str, size: tuple[int, int]) -> Array:
    """Return the mask, bool (height, width), that `encode_counts` made a text of."""
    counts = _read_counts(text)
    inside = np.arange(len(counts)) % 2 == 1
    return np.repeat(inside, counts).reshape(size[1], size[0]).T


def sample_counts(text: str, height: int, rows: Array, columns: Array) -> Array:
    """Return some pixels of the mask that `encode_counts` made a text of, without making the others.

    Args:
        text: run lengths.
        height: rows of the mask.
        rows: which of its rows, in ascending order.
        columns: which of its columns, in ascending order.

    Returns:
        bool (rows, columns).
    """
    ends = np.cumsum(_read_counts(text))
    places = columns.astype(np.int64)[:, None] * height + rows
    return np.asarray(np.searchsorted(ends, places, side="right") % 2 == 1).T


def _read_counts(text: str) -> Array:
    """Return run lengths, int64, of their text: see `encode_counts`."""
    chunks = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int64) - 48
    if not len(chunks):
        return chunks
    is_last = chunks & 32 == 0
    firsts = np.concatenate([[0], np.flatnonzero(is_last)[:-1] + 1])
    lengths = np.diff(np.append(firsts, len(chunks)))
    shifts = _CHUNK_BITS * (np.arange(len(chunks)) - np.repeat(firsts, lengths))
    numbers = np.add.reduceat((chunks & 31) << shifts, firsts)
    signs = chunks[is_last] & 16 != 0
    numbers -= np.where(signs, np.int64(1) << (_CHUNK_BITS * lengths), 0)
    numbers[1::2] = numbers[
        1::2
    ].cumsum()  # each but the first three is what it differs from the last but one
    numbers[2::2] = numbers[2::2].cumsum()
    return numbers
