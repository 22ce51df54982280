"""The chunks that kernels split their work into."""

from dataclasses import dataclass

from engine.compiler.emit.runtime_sizes import Sizes


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

    def sized(self, sizes: Sizes) -> "ChunkSize":
        """Return the work with its parts as runtime dimensions."""
        return ChunkSize(*map(sizes.extent, (self.rows, self.tiles, self.blocks)))


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
