"""The matrices of Winograd convolutions, F(4x4, 3x3), and what multiplies with them on both sides.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015. The points are in an order of our own, two
and two: what a pair does to a filter has terms in common.

Filters are transformed when they are packed, by numpy, or by a kernel that multiplies with them. Both do the same
operations of float32 in the same order, none of them fused: the results have the same bits.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.types import IRValue
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
