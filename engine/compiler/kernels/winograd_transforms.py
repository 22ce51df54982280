"""The matrices of Winograd convolutions, F(m x m, 3x3), and what multiplies with them on both sides.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
"""

from collections.abc import Sequence

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue
from engine.light_dataclass import dataclass

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Transforms:
    """The matrices of F(m x m, 3x3), in the names of the paper."""

    outputs: int
    patch: Matrix
    filter: Matrix
    result: Matrix

    @property
    def inputs(self) -> int:
        """Rows and columns of a patch."""
        return self.outputs + 2


F2 = Transforms(
    2,
    ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    ((1, 1, 1, 0), (0, 1, -1, -1)),
)
F4 = Transforms(
    4,
    (
        (4, 0, -5, 0, 1, 0),
        (0, -4, -4, 1, 1, 0),
        (0, 4, -4, -1, 1, 0),
        (0, -2, -1, 2, 1, 0),
        (0, 2, -1, -2, 1, 0),
        (0, 4, 0, -5, 0, 1),
    ),
    (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
    ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
)
TRANSFORMS = {2: F2, 4: F4}
"""By the rows and columns of a tile's outputs."""


def transformed(e: Emitter, matrix: Matrix, tile: Sequence[Sequence[IRValue]]) -> list[IRValue]:
    """Return matrix @ tile @ matrix^T, row after row."""
    columns = [[_combine(e, row, [line[j] for line in tile]) for row in matrix] for j in range(len(tile[0]))]
    return [_combine(e, row, [column[i] for column in columns]) for i in range(len(matrix)) for row in matrix]


def _combine(e: Emitter, coefficients: Sequence[float], values: Sequence[IRValue]) -> IRValue:
    """Return the sum of coefficient * value, without the multiplications by 0, 1 and -1."""
    terms = [(k, value) for k, value in zip(coefficients, values, strict=True) if k]
    terms.sort(key=lambda term: term[0] != 1)  # one that needs no multiplication starts the sum
    first, value = terms[0]
    total = value if first == 1 else e.fmul(e.splat(first), value)
    for k, value in terms[1:]:
        if k == 1:
            total = e.fadd(total, value)
        elif k == -1:
            total = e.fsub(total, value)
        else:
            total = e.fma(e.splat(k), value, total)
    return total
