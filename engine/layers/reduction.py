"""Layers that reduce dimensions by summing: sum, mean, prod, std, var, norm, logsumexp, cumsum, cumprod."""

import numpy as np

from engine.binding.arguments import DType, Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import reductions, sums
from engine.kernels.axes import axes, axis, reduced_shape
from engine.kernels.casting import cast
from engine.kernels.promotion import INT64, computing_dtype, floating, real_dtype
from engine.layers.checks import check_kind
from engine.spec import TensorSpec


def _summed_dtype(input: Array | TensorSpec, dtype: DType | None) -> DType:
    """Return the dtype of a sum: int64 of integers and bools."""
    if dtype is not None:
        return dtype
    return INT64 if input.dtype.kind in "biu" else input.dtype


def _infer_sum(input: TensorSpec, dim: Ints, keepdim: bool, dtype: DType | None) -> TensorSpec:
    shape = reduced_shape(input.shape, axes(dim, input.rank), keepdim)
    return TensorSpec(shape, _summed_dtype(input, dtype))


@layer("torch.sum", infer=_infer_sum)
def total(input: Array, dim: Ints = (), keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Add up over `dim`, or over all dimensions."""
    result = _summed_dtype(input, dtype)
    values = cast(input, computing_dtype(result))
    return cast(sums.total(values, axes(dim, input.ndim), keepdim), result)


def _float_dtype(input: Array | TensorSpec, dtype: DType | None) -> DType:
    result = input.dtype if dtype is None else dtype
    if result.kind not in "fc":
        raise ArgumentError("input", f"got {result}", "a floating point or complex dtype")
    return result


def _infer_mean(input: TensorSpec, dim: Ints, keepdim: bool, dtype: DType | None) -> TensorSpec:
    shape = reduced_shape(input.shape, axes(dim, input.rank), keepdim)
    return TensorSpec(shape, _float_dtype(input, dtype))


@layer("torch.mean", infer=_infer_mean)
def mean(input: Array, dim: Ints = (), keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Average over `dim`, or over all dimensions."""
    result = _float_dtype(input, dtype)
    return cast(reductions.mean(cast(input, result), axes(dim, input.ndim), keepdim), result)


def _infer_prod(input: TensorSpec, dim: int | None, keepdim: bool, dtype: DType | None) -> TensorSpec:
    places = axes(() if dim is None else (dim,), input.rank)
    return TensorSpec(reduced_shape(input.shape, places, keepdim), _summed_dtype(input, dtype))


@layer("torch.prod", infer=_infer_prod)
def prod(input: Array, dim: int | None = None, keepdim: bool = False, dtype: DType | None = None) -> Array:
    """Multiply over one dimension, or over all."""
    result = _summed_dtype(input, dtype)
    places = axes(() if dim is None else (dim,), input.ndim)
    values = cast(input, computing_dtype(result))
    computed = np.prod(values, places, values.dtype, keepdims=keepdim)
    return cast(np.asarray(computed), result)


def _infer_spread(input: TensorSpec, dim: Ints, keepdim: bool) -> TensorSpec:
    check_kind("input", input, "fc")
    return TensorSpec(reduced_shape(input.shape, axes(dim, input.rank), keepdim), real_dtype(input.dtype))


@layer("torch.var", infer=_infer_spread)
def var(
    input: Array,
    dim: Ints = (),
    unbiased: bool | int = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> Array:
    """Take the variance over `dim`, or over all dimensions.

    PNNX writes the correction either under its own name or, as an int, in the place of `unbiased`.
    """
    taken = float(unbiased) if correction is None else correction
    computed = reductions.variance(input, axes(dim, input.ndim), taken, keepdim)
    return cast(computed, real_dtype(input.dtype))


@layer("torch.std", infer=_infer_spread)
def std(
    input: Array,
    dim: Ints = (),
    unbiased: bool | int = True,
    keepdim: bool = False,
    correction: float | None = None,
) -> Array:
    """Take the standard deviation over `dim`, or over all dimensions; see `var`."""
    taken = float(unbiased) if correction is None else correction
    computed = np.sqrt(reductions.variance(input, axes(dim, input.ndim), taken, keepdim))
    return cast(np.asarray(computed), real_dtype(input.dtype))


def _order(p: float | str | None) -> float:
    if p is None or p == "fro":
        return 2.0
    if isinstance(p, str):
        raise ArgumentError("p", f"got {p!r}", "a number or 'fro'")
    return p


def _infer_norm(
    input: TensorSpec, p: float | str | None, dim: Ints, keepdim: bool, dtype: DType | None
) -> TensorSpec:
    result = TensorSpec(input.shape, dtype or input.dtype)
    check_kind("input", result, "fc")
    places = axes(dim, input.rank)
    order = _order(p)
    if (order < 0 or np.isinf(order)) and any(input.shape[place] == 0 for place in places):
        raise ArgumentError(
            "input", f"got shape {input.shape}", f"something to take the norm of order {p} of"
        )
    return TensorSpec(reduced_shape(input.shape, places, keepdim), real_dtype(result.dtype))


@layer("torch.norm", infer=_infer_norm)
def norm(
    input: Array,
    p: float | str | None = "fro",
    dim: Ints = (),
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Array:
    """Take the p-norm of the vectors along `dim`, or of all elements as one vector."""
    values = cast(input, dtype or input.dtype)
    computed = reductions.norm(values, _order(p), axes(dim, input.ndim), keepdim)
    return cast(computed, real_dtype(values.dtype))


def _infer_logsumexp(input: TensorSpec, dim: Ints, keepdim: bool) -> TensorSpec:
    return TensorSpec(reduced_shape(input.shape, axes(dim, input.rank), keepdim), floating(input.dtype))


@layer("torch.logsumexp", infer=_infer_logsumexp)
def logsumexp(input: Array, dim: Ints, keepdim: bool = False) -> Array:
    """Take the logarithm of the sum of exponentials over `dim`."""
    result = floating(input.dtype)
    return cast(reductions.logsumexp(cast(input, result), axes(dim, input.ndim), keepdim), result)


def _infer_cumulative(input: TensorSpec, dim: int, dtype: DType | None) -> TensorSpec:
    axis(dim, input.rank)
    return TensorSpec(input.shape, _summed_dtype(input, dtype))


@layer("torch.cumsum", infer=_infer_cumulative)
def cumsum(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """Add up along a dimension, keeping each intermediate sum."""
    return _accumulated(np.add, input, dim, dtype)


@layer("torch.cumprod", infer=_infer_cumulative)
def cumprod(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """Multiply along a dimension, keeping each intermediate product."""
    return _accumulated(np.multiply, input, dim, dtype)


def _accumulated(function: np.ufunc, input: Array, dim: int, dtype: DType | None) -> Array:
    result = _summed_dtype(input, dtype)
    if not input.ndim:
        return cast(input, result)
    values = cast(input, computing_dtype(result))
    return cast(sums.running(function, values, axis(dim, input.ndim)), result)
