"""The groups that a chunk's pixels are taken in: each is multiplied at once by a block of filters.

In vectors, groups keep to the rows of the output: each is a part of one row, or some whole rows. In matrix registers
they run on from row to row over all numbers of `staged_layout.py`, as pixels have to lie evenly there; pixels of
numbers beyond a row's end are computed and dropped.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.compiler.contraction.staged_layout import StagedLayout
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex


@dataclass(frozen=True, slots=True)
class PixelGroup:
    """Pixels that are multiplied at once.

    Attributes:
        row: row of the first one in the chunk.
        column: column of the first one; where groups run on, its number among those of all rows.
        index: groups before it.
        count: the number of them.
        width: how many are contiguous before those of the next row begin.
    """

    row: IRIndex
    column: IRIndex
    index: IRIndex
    count: int
    width: int


@dataclass(frozen=True, slots=True)
class PixelGroups:
    """The groups of a chunk.

    Attributes:
        layout: layout of the chunk.
        most: pixels that a group may have; where they are more than a row, it has as many whole rows as fit.
        runs_on: whether groups run on from row to row.
    """

    layout: StagedLayout
    most: int
    runs_on: bool

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a group."""
        columns = self.layout.shape.size[1]
        if self.runs_on or self.most < columns:
            return 1, self.most
        return min(self.layout.rows, self.most // columns), columns

    @property
    def count(self) -> int:
        """Groups of a whole chunk."""
        layout, (rows, columns) = self.layout, self.size
        if self.runs_on:
            return -(-layout.pixels // columns)
        return -(-layout.rows // rows) * -(-layout.shape.size[1] // columns)

    def each(self, e: Emitter, rows: IRIndex) -> Iterator[PixelGroup]:
        """Write the loops over the groups of a chunk that has so many rows.

        The last group may reach over rows that this chunk does not have and others have: these are staged all the same.
        """
        layout, (height, width) = self.layout, self.size
        columns = layout.shape.size[1]
        if self.runs_on:
            yield from self._of_row(e, 0, (e.mul(rows, layout.row_pixels), layout.pixels))
        elif width < columns:
            with e.loop(0, rows) as loop:
                yield from self._of_row(e, loop.index, (columns, columns))
        else:
            for first, count in _cut(e, rows, layout.rows, height):
                yield PixelGroup(first, 0, e.divmod(first, height)[0], count * width, width)

    def _of_row(self, e: Emitter, row: IRIndex, end: tuple[IRIndex, int]) -> Iterator[PixelGroup]:
        """Write the loop over the groups of a row up to an end, of which is known how far it is at most."""
        width = self.size[1]
        before = e.mul(row, -(-end[1] // width))
        for first, count in _cut(e, *end, width):
            yield PixelGroup(row, first, e.add(before, e.divmod(first, width)[0]), count, count)


def _cut(e: Emitter, end: IRIndex, most: int, step: int) -> Iterator[tuple[IRIndex, int]]:
    """Write the loop in steps up to an end that is at most so far, and the last step where it may be smaller."""
    whole = most - most % step
    with e.loop(0, e.minimum(end, whole), step) as loop:
        yield loop.index, step
    if whole < most:
        with e.when(e.compare(">", end, whole)):
            yield whole, most - whole
