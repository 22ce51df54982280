"""Base of kernels of an expression over arrays of any strides.

Arguments: the operands, then the output. A broadcast axis has stride 0.
"""

import math
from dataclasses import dataclass

from engine.compiler.emit.jit import Kernel
from engine.compiler.emit.pointwise import PointwiseExpression
from engine.compiler.memory.region import Region

Strides = tuple[int, ...]

PIECE = 4096
"""Elements of a line that are done at a time; a multiple of every vector."""
_CHUNK = 1 << 16
"""Elements of a chunk: some 10 microseconds of copying."""


@dataclass(frozen=True, slots=True)
class StridedExpression(Kernel):
    """An expression over arrays, and what of them it touches.

    Attributes:
        shape: shape of the output; axes in order of the output's strides, largest first.
        operands: strides of each operand, in elements.
        out: strides of the output, in elements.
        expression: over the operands.
    """

    shape: tuple[int, ...]
    operands: tuple[Strides, ...]
    out: Strides
    expression: PointwiseExpression

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed regions of the arguments, in order."""
        out = Region(self.shape, self.out, is_written=True)
        return *(Region(self.shape, strides) for strides in self.operands), out

    @property
    def chunks(self) -> int:
        """Parts that the work is split into."""
        return -(-math.prod(self.shape) // _CHUNK)
