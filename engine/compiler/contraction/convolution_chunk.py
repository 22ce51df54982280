"""The parts that a direct convolution splits its work into."""

from dataclasses import dataclass

from engine.compiler.emit.types import IRIndex, IRValue


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Work of one chunk of a convolution.

    Attributes:
        rows: rows of the output, all of one image.
        tiles: register tiles of a row.
        blocks: blocks of filters; a block is as wide as the register tile.
    """

    rows: int
    tiles: int
    blocks: int


def even_size(count: int, lines: int, parts: int, least: int, threads: int) -> int:
    """Return how many rows, or tiles, each part of the work has, so that threads have evenly much to do.

    Of the sizes that make at least one part for each thread, it is the one that leaves the busiest thread least to do,
    and the smallest of several such.

    Args:
        count: rows of an image, or tiles of a row.
        lines: images, or rows; a part belongs to one of them.
        parts: requested number, at least 1; fewer where that is more even.
        least: how many there have to be even so.
        threads: that share them.
    """
    first = min(count, -(-count * lines // parts))
    last = max(first, min(count, count * lines // max(least, threads)))
    return min(range(first, last + 1), key=lambda size: -(-lines * -(-count // size) // threads) * size)


@dataclass(frozen=True, slots=True)
class Source:
    """Source of a chunk's tiles.

    Attributes:
        base: address of the image's or the staged rows' beginning.
        strides: elements between images, rows and pixels.
        first_row: row of output that the first staged row belongs to.
    """

    base: IRValue
    strides: tuple[int, int, int]
    first_row: IRIndex


@dataclass(frozen=True, slots=True)
class Chunk:
    """Operands of a call.

    Attributes:
        arguments: addresses of weights, bias, output and the epilogue's operands.
        source: where its input is.
        image: its image.
        rows: its first row and the end of them.
        tiles: its first whole tile of a row and the end of them.
        has_rest: whether it has the end of rows that is less than a tile; None where there is none.
    """

    arguments: list[IRValue]
    source: Source
    image: IRIndex
    rows: tuple[IRIndex, IRIndex]
    tiles: tuple[IRIndex, IRIndex]
    has_rest: IRValue | None


@dataclass(frozen=True, slots=True)
class Block:
    """A block of filters.

    Attributes:
        group: its group.
        place: its place in the group.
        lanes: lanes of each of its vectors that hold filters.
    """

    group: IRIndex
    place: IRIndex
    lanes: list[int]
