"""Softmax and its relatives."""

import numpy as np

from engine.binding.arguments import DType
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.kernels.axes import axis
from engine.kernels.casting import cast, narrow, widen
from engine.kernels.sums import total
from engine.layers.checks import check_kind, check_rank
from engine.spec import TensorSpec


def _axis(dim: int | None, rank: int) -> int:
    """Return the axis, in place of None the one that PyTorch takes by the number of dimensions."""
    if dim is None:
        dim = 0 if rank in (0, 1, 3) else 1
    return axis(dim, rank)


def _infer_softmax(input: TensorSpec, dim: int | None, dtype: DType | None = None) -> TensorSpec:
    _axis(dim, input.rank)
    result = input if dtype is None else TensorSpec(input.shape, dtype)
    check_kind("input", result, "f")
    return result


def _prepared(input: Array, dtype: DType | None) -> Array:
    """Give the input the requested dtype, and a dimension if it has none."""
    return np.atleast_1d(input if dtype is None else cast(input, dtype))


@layer("nn.Softmax", "F.softmax", infer=_infer_softmax)
def softmax(input: Array, dim: int | None = None, dtype: DType | None = None) -> Array:
    """Compute exp(x) / sum(exp(x)) along `dim`, in `dtype` if one is given."""
    return _softmax(_prepared(input, dtype), _axis(dim, input.ndim)).reshape(input.shape)


@layer("nn.LogSoftmax", "F.log_softmax", infer=_infer_softmax)
def log_softmax(input: Array, dim: int | None = None, dtype: DType | None = None) -> Array:
    """Compute log(softmax(x)) along `dim`, in `dtype` if one is given."""
    return _log_softmax(_prepared(input, dtype), _axis(dim, input.ndim)).reshape(input.shape)


@layer("nn.Softmin", "F.softmin", infer=_infer_softmax)
def softmin(input: Array, dim: int | None = None, dtype: DType | None = None) -> Array:
    """Compute softmax(-x) along `dim`, in `dtype` if one is given."""
    negated = np.negative(_prepared(input, dtype))
    return _softmax(negated, _axis(dim, input.ndim)).reshape(input.shape)


def _infer_softmax2d(input: TensorSpec) -> TensorSpec:
    check_rank("input", input, 3, 4)
    return _infer_softmax(input, -3)


@layer("nn.Softmax2d", infer=_infer_softmax2d)
def softmax2d(input: Array) -> Array:
    """Compute softmax over the channels of (batch, channels, height, width), or of an image without batch."""
    return _softmax(input, -3)


def _softmax(x: Array, axis: int) -> Array:
    """Compute exp(x) / sum(exp(x)) along `axis`, float16 in float32. A new array of `x`'s shape and dtype."""
    if x.size == 0:
        return x.copy()
    shifted = _shifted(x, axis)
    np.exp(shifted, out=shifted)
    shifted /= total(shifted, (axis,), keepdims=True)
    return narrow(shifted, x.dtype)


def _log_softmax(x: Array, axis: int) -> Array:
    """Compute x - log(sum(exp(x))) along `axis`, float16 in float32. A new array of `x`'s shape and dtype."""
    if x.size == 0:
        return x.copy()
    shifted = _shifted(x, axis)
    shifted -= np.log(total(np.exp(shifted), (axis,), keepdims=True))
    return narrow(shifted, x.dtype)


def _shifted(x: Array, axis: int) -> Array:
    """Draw the largest element along `axis` to 0, so that no exponential overflows."""
    computed = widen(x)
    shifted: Array = np.subtract(computed, computed.max(axis=axis, keepdims=True))
    return shifted
