"""Triangles and diagonals of matrices: tril, diagonal, trace and similar."""

import numpy as np

from engine.binding.arguments import Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis, checked_shape
from engine.kernels.casting import cast
from engine.kernels.promotion import INT64
from engine.layers.checks import check_min_rank, check_rank
from engine.layers.view_rules import by_views, view_layer
from engine.spec import TensorSpec


def _infer_triangle(input: TensorSpec) -> TensorSpec:
    check_min_rank("input", input, 2)
    return input


@layer("aten::tril", infer=_infer_triangle)
def tril(input: Array, diagonal: int = 0) -> Array:
    """Keep what is on and below a diagonal of each matrix; zero elsewhere."""
    return np.where(_below(input, diagonal), input, input.dtype.type(0))


@layer("aten::triu", infer=_infer_triangle)
def triu(input: Array, diagonal: int = 0) -> Array:
    """Keep what is on and above a diagonal of each matrix; zero elsewhere."""
    return np.where(_below(input, diagonal - 1), input.dtype.type(0), input)


def _below(input: Array, diagonal: int) -> Array:
    """Return which places of a matrix are on or below a diagonal."""
    rows, columns = np.arange(input.shape[-2])[:, np.newaxis], np.arange(input.shape[-1])
    return columns - rows <= diagonal


def _diagonal_of(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    first, second = axis(dim1, input.ndim, "dim1"), axis(dim2, input.ndim, "dim2")
    if first == second or input.ndim < 2:
        raise ArgumentError("dim2", f"got {dim2}, dim1 {dim1}", "two dimensions")
    return np.diagonal(input, offset, first, second)


@view_layer("aten::diagonal")
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Look at a diagonal of the matrices in two dimensions; it becomes the last dimension."""
    return _diagonal_of(input, offset, dim1, dim2)


@view_layer("aten::linalg_diagonal")
def last_diagonal(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Look at a diagonal of the matrices in two dimensions, by default the last."""
    return _diagonal_of(input, offset, dim1, dim2)


def _infer_diag_embed(input: TensorSpec, offset: int, dim1: int, dim2: int) -> TensorSpec:
    if not input.shape:
        raise ArgumentError("input", "got no dimensions", "a tensor with dimensions")
    places = sorted((axis(dim1, input.rank + 1, "dim1"), axis(dim2, input.rank + 1, "dim2")))
    if places[0] == places[1]:
        raise ArgumentError("dim2", f"got {dim2}, dim1 {dim1}", "two dimensions")
    shape = list(input.shape[:-1])
    for place in places:
        shape.insert(place, input.shape[-1] + abs(offset))
    return input.with_shape(checked_shape(shape))


@layer("aten::diag_embed", infer=_infer_diag_embed)
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Make matrices, in two dimensions of the result, that have the last dimension of `input` on a diagonal."""
    spec = _infer_diag_embed(TensorSpec(input.shape, input.dtype), offset, dim1, dim2)
    result = np.zeros(spec.shape, spec.dtype)
    _write_diagonal(result, input, offset, dim1, dim2)
    return result


def _write_diagonal(target: Array, values: Array, offset: int, dim1: int, dim2: int) -> None:
    transposed = np.moveaxis(target, (dim1, dim2), (-2, -1))
    places = np.arange(_diagonal_of(target, offset, dim1, dim2).shape[-1])
    transposed[..., places + max(-offset, 0), places + max(offset, 0)] = values


def _infer_diagflat(input: TensorSpec, offset: int) -> TensorSpec:
    return input.with_shape(checked_shape((input.size + abs(offset),) * 2))


@layer("aten::diagflat", infer=_infer_diagflat)
def diagflat(input: Array, offset: int = 0) -> Array:
    """Make the matrix that has all elements of `input` on a diagonal."""
    return np.diagflat(input, offset)


def _infer_diagonal_scatter(
    input: TensorSpec, src: TensorSpec, offset: int, dim1: int, dim2: int
) -> TensorSpec:
    shape = by_views(diagonal)(input, offset, dim1, dim2).shape
    if src.shape != shape or src.dtype != input.dtype:
        raise ArgumentError("src", f"got {src}", f"shape {shape} in {input.dtype}")
    return input


@layer("aten::diagonal_scatter", infer=_infer_diagonal_scatter)
def diagonal_scatter(input: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Give a copy of `input` that has `src` on a diagonal."""
    result = input.copy()
    _write_diagonal(result, src, offset, dim1, dim2)
    return result


def _infer_fill_diagonal(input: TensorSpec) -> TensorSpec:
    check_min_rank("input", input, 2)
    if input.rank > 2 and len(set(input.shape)) > 1:
        raise ArgumentError("input", f"got shape {input.shape}", "equal sizes")
    return input


@layer("aten::fill_diagonal", infer=_infer_fill_diagonal)
def fill_diagonal(input: Array, value: Number, wrap: bool = False) -> Array:
    """Give a copy of `input` with one value on the main diagonal; `wrap` continues it in tall matrices."""
    result = input.copy()
    np.fill_diagonal(result, cast(np.asarray(value), input.dtype), wrap)
    return result


def _infer_trace(input: TensorSpec) -> TensorSpec:
    check_rank("input", input, 2)
    return TensorSpec((), INT64 if input.dtype.kind in "biu" else input.dtype)


@layer("aten::trace", infer=_infer_trace)
def trace(input: Array) -> Array:
    """Add up the main diagonal of a matrix."""
    dtype = INT64 if input.dtype.kind in "biu" else input.dtype
    return np.asarray(np.trace(input, dtype=dtype))
