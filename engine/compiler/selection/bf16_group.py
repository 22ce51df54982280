"""Register blocking of bf16 products: groups of pixels and of filters."""

from engine.compiler.emit.target import Target
from engine.compiler.kernels.shapes import ConvShape
from engine.compiler.kernels.tile import Tile, cycles_of, fitting_tiles


def product_group(target: Target, shape: ConvShape, rows: int) -> tuple[int, int]:
    """Return the tiles of pixels and of filters, or the pixels and the vectors of filters, of a product.

    Args:
        target: the compilation target.
        shape: shape of the convolution.
        rows: rows of output of a chunk.
    """
    vectors, columns = -(-shape.filters // target.lanes), shape.size[1]
    if target.has_tiles:
        return (2, 2) if vectors > 1 else (3, 1)  # with those of the operands, as many tiles as there are
    fitting = [
        tile
        for tile in fitting_tiles(target, rows * columns, vectors)
        if tile.pixels < columns or tile.pixels % columns == 0
    ]
    best = min(fitting, key=lambda tile: _cycles(rows, columns, tile) * -(-vectors // tile.vectors))
    return best.pixels, best.vectors


def _cycles(rows: int, columns: int, tile: Tile) -> float:
    """Return the cycles that a step of all pixels takes with one block of filters."""
    lines, pixels = (rows, columns) if tile.pixels < columns else (1, rows * columns)
    full, rest = divmod(pixels, tile.pixels)
    return lines * (full * cycles_of(tile) + (cycles_of(Tile(rest, tile.vectors)) if rest else 0.0))
