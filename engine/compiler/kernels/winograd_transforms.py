"""The matrices of Winograd convolutions, F(4x4, 3x3), and what multiplies with them on both sides.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. The points are in an order of our own, two
and two: what a pair does to a filter has terms in common.

Filters are transformed when they are packed, by numpy, or by a kernel that multiplies with them. Both do the same
operations of float32 in the same order, none of them fused: the results have the same bits.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRIndex, IRValue
from engine.dtypes import Array

Matrix = tuple[tuple[float, ...], ...]


OUTPUTS = 4
"""Rows and columns of outputs that a tile computes."""
SIDE = OUTPUTS + 2
"""Rows and columns of its patch of inputs."""
POSITIONS = SIDE**2
PATCH: Matrix = (
    (4, 0, -5, 0, 1, 0),
    (0, 4, 0, -5, 0, 1),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
)
"""B^T of the paper."""
FILTER: Matrix = (
    (1 / 4, 0, 0),
    (0, 0, 1),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
)
"""G."""
RESULT: Matrix = ((1, 0, 1, 1, 1, 1), (0, 0, 1, -1, 2, -2), (0, 0, 1, 1, 4, 4), (0, 1, 1, -1, 8, -8))
"""A^T."""


_MANY_REGISTERS = 32
"""Vector registers from which on the values between both multiplications stay there; others have them on the stack."""


def transformed(
    e: Emitter, matrix: Matrix, load: Callable[[IRIndex, IRIndex], IRValue], in_loops: bool
) -> Iterator[tuple[IRIndex, list[IRValue]]]:
    """Write matrix @ tile @ matrix^T; yields the place of each row of the result, and the row.

    Args:
        e: the kernel.
        matrix: the matrix.
        load: loads the element of the tile in a row and a column.
        in_loops: whether columns and rows are written once, in loops: the kernel compiles in half the time.
    """
    if not in_loops and e.target.registers >= _MANY_REGISTERS:
        columns = [_multiplied(e, matrix, [load(i, j) for i in range(SIDE)]) for j in range(SIDE)]
        for i in range(len(matrix)):
            yield i, _multiplied(e, matrix, [column[i] for column in columns])
        return
    kept, width = e.local(len(matrix) * SIDE), SIDE * e.lanes
    with e.loop(0, SIDE) as column:
        values = _multiplied(e, matrix, [load(i, column.index) for i in range(SIDE)])
        for i, value in enumerate(values):
            e.store(value, kept, i * width, e.mul(column.index, e.lanes))
    with e.loop(0, len(matrix)) as row:
        line = [e.load(kept, e.mul(row.index, width), j * e.lanes) for j in range(SIDE)]
        yield row.index, _multiplied(e, matrix, line)


def _multiplied(e: Emitter, matrix: Matrix, column: Sequence[IRValue]) -> list[IRValue]:
    """Return matrix @ column."""
    return [_combine(e, row, column) for row in matrix]


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


Number = TypeVar("Number")


@dataclass(frozen=True, slots=True)
class Arithmetic(Generic[Number]):
    """Operations of float32, each rounded separately; the first factor is a constant."""

    scaled: Callable[[float, Number], Number]
    sum: Callable[[Number, Number], Number]
    difference: Callable[[Number, Number], Number]


_OF_ARRAYS: Arithmetic[Array] = Arithmetic(
    lambda factor, value: np.float32(factor) * value, operator.add, operator.sub
)


def of_vectors(e: Emitter) -> Arithmetic[IRValue]:
    """Return the operations of a kernel's vectors."""
    return Arithmetic(lambda factor, value: e.fmul(e.splat(factor), value), e.fadd, e.fsub)


def transformed_filters(filters: Array) -> Array:
    """Return G filter G^T of filters (…, 3, 3), its places, row after row, along the first axis."""
    columns = [
        half_transformed(_OF_ARRAYS, FILTER, list(np.moveaxis(filters[..., j], -1, 0))) for j in range(3)
    ]
    rows = zip(*columns, strict=True)
    return np.stack([place for row in rows for place in half_transformed(_OF_ARRAYS, FILTER, row)])


def half_transformed(arithmetic: Arithmetic[Number], matrix: Matrix, taps: Sequence[Number]) -> list[Number]:
    """Return matrix @ taps, for three taps: those outside first, so that the rows of a pair begin alike."""
    return [_term_by_term(arithmetic, row, taps) for row in matrix]


def _term_by_term(arithmetic: Arithmetic[Number], row: Sequence[float], taps: Sequence[Number]) -> Number:
    first, *rest = (place for place in (0, 2, 1) if row[place])
    total = taps[first] if row[first] == 1 else arithmetic.scaled(row[first], taps[first])
    for place in rest:
        term = arithmetic.scaled(abs(row[place]), taps[place])
        total = arithmetic.sum(total, term) if row[place] > 0 else arithmetic.difference(total, term)
    return total
