"""AMX: registers that hold tiles of 16 rows of 64 bytes, and their products.

Tiles are named by numbers, 0 to 7. A tile of results has 16 columns of float32. A tile of left operands has a row of up
to 16 pairs of bfloat16 for each row of results; one of right operands has a row for each of these pairs, and in it a
pair for each column of results.
"""

from llvmlite import ir

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import I8, POINTER, TileShape

ROWS = 16
"""Maximum rows of a tile."""
WORDS = 16
"""Maximum words of a row."""
_PALETTE = 1
_ROW_BYTES, _ROW_COUNTS = 16, 48  # where the two lie in the 64 bytes of a configuration


def configure(e: Emitter, shapes: list[TileShape]) -> None:
    """Write what gives tiles 0, 1, … their shapes, and makes zeros of them."""
    e.tile_shapes = shapes
    layout = bytearray(64)
    layout[0] = _PALETTE
    for tile, shape in enumerate(shapes):
        layout[_ROW_BYTES + 2 * tile] = 4 * shape.words
        layout[_ROW_COUNTS + tile] = shape.rows
    words = [int.from_bytes(layout[start : start + 8], "little") for start in range(0, 64, 8)]
    e.builder.call(e.intrinsic("llvm.x86.ldtilecfg", ir.VoidType(), [POINTER]), [e.table(words)])


def release(e: Emitter) -> None:
    """Write what gives the tiles back: a thread that uses none is switched to and from faster."""
    e.builder.call(e.intrinsic("llvm.x86.tilerelease", ir.VoidType(), []), [])


def multiply(e: Emitter, product: str, total: int, left: int, right: int) -> None:
    """Write the product of two tiles, added to a third tile; `product` is the intrinsic for the type of their words."""
    numbers = [ir.Constant(I8, tile) for tile in (total, left, right)]
    e.builder.call(e.intrinsic(product, ir.VoidType(), [I8] * 3), numbers)
