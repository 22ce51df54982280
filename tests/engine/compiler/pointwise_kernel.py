"""The least kernel that applies an expression: for tests of functions."""

from dataclasses import dataclass

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.pointwise import PointwiseExpression, emit
from engine.compiler.memory.region import Region, line


@dataclass(frozen=True)
class Pointwise:
    """Applies an expression to arrays of `size` elements, a multiple of the vector. Arguments: operands, output."""

    size: int
    operands: int
    expression: PointwiseExpression
    chunks: int = 1
    scratch: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return *[line(self.size)] * self.operands, line(self.size, is_written=True)

    def emit(self, e: Emitter) -> None:
        *operands, out = [e.argument(place) for place in range(self.operands + 1)]
        with e.loop(0, self.size, e.lanes) as loop:
            leaves = [e.load(operand, loop.index) for operand in operands]
            e.store(emit(e, self.expression, leaves), out, loop.index)
