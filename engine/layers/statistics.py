"""Statistics and norms under their ATen names: var_mean, nansum, logcumsumexp, linalg_norm and similar."""

from typing import Any

import numpy as np

from engine.binding.arguments import Ints, Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import reductions
from engine.kernels.axes import axes, axis, reduced_shape
from engine.kernels.casting import cast, narrow, widen
from engine.kernels.promotion import INT64
from engine.kernels.sums import total
from engine.layers.checks import check_kind, check_min_rank
from engine.spec import TensorSpec


def _infer_spread(input: TensorSpec, dim: Ints, keepdim: bool) -> tuple[TensorSpec, TensorSpec]:
    check_kind("input", input, "f")
    result = input.with_shape(reduced_shape(input.shape, axes(dim, input.rank), keepdim))
    return result, result


@layer("aten::var_mean", infer=_infer_spread)
def var_mean(
    input: Array, dim: Ints = (), correction: int | float | bool | None = None, keepdim: bool = False
) -> tuple[Array, Array]:
    """Take variance and mean; the count of values is reduced by `correction`, 1 where it is None."""
    variance, mean = _moments(input, dim, correction, keepdim)
    return narrow(variance, input.dtype), mean


@layer("aten::std_mean", infer=_infer_spread)
def std_mean(
    input: Array, dim: Ints = (), correction: int | float | bool | None = None, keepdim: bool = False
) -> tuple[Array, Array]:
    """Take standard deviation and mean; see `var_mean`."""
    variance, mean = _moments(input, dim, correction, keepdim)
    return narrow(np.sqrt(variance), input.dtype), mean


def _moments(
    input: Array, dim: Ints, correction: int | float | bool | None, keepdim: bool
) -> tuple[Array, Array]:
    """Return the variance, float64, and the mean in the input's dtype."""
    places = axes(dim, input.ndim)
    taken = 1.0 if correction is None else float(correction)
    variance = reductions.variance(input, places, taken, keepdim)
    return variance, narrow(reductions.mean(input, places, keepdim), input.dtype)


def _check_no_dtype(dtype: int | None) -> None:
    if dtype is not None:
        raise ArgumentError("dtype", f"got {dtype}", "None: the numbers of ATen's dtypes are not known here")


def _infer_nansum(input: TensorSpec, dim: Ints, keepdim: bool, dtype: int | None) -> TensorSpec:
    _check_no_dtype(dtype)
    check_kind("input", input, "biuf")
    shape = reduced_shape(input.shape, axes(dim, input.rank), keepdim)
    return TensorSpec(shape, input.dtype if input.dtype.kind == "f" else INT64)


@layer("aten::nansum", infer=_infer_nansum)
def nansum(input: Array, dim: Ints = (), keepdim: bool = False, dtype: int | None = None) -> Array:
    """Add up what is not NaN."""
    result = _infer_nansum(TensorSpec(input.shape, input.dtype), dim, keepdim, dtype).dtype
    values = cast(widen(input), result) if result == INT64 else widen(input)
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), values.dtype.type(0), values)
    return narrow(total(values, axes(dim, input.ndim), keepdim), result)


def _infer_nanmean(input: TensorSpec, dim: Ints, keepdim: bool, dtype: int | None) -> TensorSpec:
    check_kind("input", input, "f")
    return _infer_nansum(input, dim, keepdim, dtype)


@layer("aten::nanmean", infer=_infer_nanmean)
def nanmean(input: Array, dim: Ints = (), keepdim: bool = False, dtype: int | None = None) -> Array:
    """Take the mean of what is not NaN."""
    summed = widen(nansum(input, dim, keepdim, dtype))
    count = np.sum(~np.isnan(input), axes(dim, input.ndim), keepdims=keepdim)
    return narrow(summed / count.astype(summed.dtype), input.dtype)


def _infer_logcumsumexp(input: TensorSpec, dim: int) -> TensorSpec:
    check_kind("input", input, "f")
    axis(dim, input.rank)
    return input


@layer("aten::logcumsumexp", infer=_infer_logcumsumexp)
def logcumsumexp(input: Array, dim: int) -> Array:
    """Take the logarithm of the sum of exponentials so far along a dimension."""
    if not input.ndim:
        return input
    return narrow(np.logaddexp.accumulate(widen(input), axis(dim, input.ndim)), input.dtype)


def _norm_plan(rank: int, order: Number | str | None, dim: Ints) -> tuple[tuple[int, ...], bool]:
    """Return the dimensions that a norm is taken over, and whether it is one of matrices."""
    places = axes(dim, rank)
    if order is None:
        return places, False  # of vectors: Frobenius' norm of a matrix is that of its elements
    return places, len(places) == 2


def _infer_linalg_norm(
    input: TensorSpec, ord: Number | str | None, dim: Ints, keepdim: bool, dtype: int | None
) -> TensorSpec:
    _check_no_dtype(dtype)
    check_kind("input", input, "f")
    places, matrices = _norm_plan(input.rank, ord, dim)
    if ord is not None and not matrices and (len(places) != 1 or isinstance(ord, str)):
        raise ArgumentError("ord", f"got {ord!r} over {len(places)} dimensions", "one or two dimensions")
    if ord is not None and 0 in input.shape:
        raise ArgumentError("input", f"got shape {input.shape}", "something to take the norm of")
    return input.with_shape(reduced_shape(input.shape, places, keepdim))


@layer("aten::linalg_norm", infer=_infer_linalg_norm)
def linalg_norm(
    input: Array,
    ord: int | float | str | None = None,
    dim: Ints = (),
    keepdim: bool = False,
    dtype: int | None = None,
) -> Array:
    """Take the norm of vectors along one dimension, of matrices in two, or of all elements as one vector."""
    del dtype
    places, matrices = _norm_plan(input.ndim, ord, dim)
    if matrices:
        return _matrix_norm(input, ord, places, keepdim)
    order = 2.0 if ord is None or isinstance(ord, str) else float(ord)
    return narrow(reductions.norm(input, order, places, keepdim), input.dtype)


def _matrix_norm(input: Array, ord: Number | str | None, places: tuple[int, ...], keepdim: bool) -> Array:
    order: Any = ord
    return narrow(np.linalg.norm(widen(input), order, places, keepdim), input.dtype)


_MATRIX_ORDERS = (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc")


def _infer_matrix_norm(
    input: TensorSpec, ord: Number | str, dim: Ints, keepdim: bool, dtype: int | None
) -> TensorSpec:
    check_min_rank("input", input, 2)
    if ord not in _MATRIX_ORDERS or len(dim) != 2:
        raise ArgumentError("ord", f"got {ord!r} over {dim}", "fro, nuc, ±1, ±2 or ±inf over two dimensions")
    return _infer_linalg_norm(input, ord, dim, keepdim, dtype)


@layer("aten::linalg_matrix_norm", infer=_infer_matrix_norm)
def matrix_norm(
    input: Array,
    ord: int | float | str = "fro",
    dim: Ints = (-2, -1),
    keepdim: bool = False,
    dtype: int | None = None,
) -> Array:
    """Take the norm of matrices in two dimensions."""
    del dtype
    return _matrix_norm(input, ord, axes(dim, input.ndim), keepdim)
