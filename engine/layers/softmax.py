"""Softmax and its relatives."""

import numpy as np

from engine.binding.arguments import DType
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.kernels import softmax as kernels
from engine.kernels.axes import axis
from engine.kernels.casting import cast
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
    return kernels.softmax(_prepared(input, dtype), _axis(dim, input.ndim)).reshape(input.shape)


@layer("nn.LogSoftmax", "F.log_softmax", infer=_infer_softmax)
def log_softmax(input: Array, dim: int | None = None, dtype: DType | None = None) -> Array:
    """Compute log(softmax(x)) along `dim`, in `dtype` if one is given."""
    return kernels.log_softmax(_prepared(input, dtype), _axis(dim, input.ndim)).reshape(input.shape)


@layer("nn.Softmin", "F.softmin", infer=_infer_softmax)
def softmin(input: Array, dim: int | None = None, dtype: DType | None = None) -> Array:
    """Compute softmax(-x) along `dim`, in `dtype` if one is given."""
    negated = np.negative(_prepared(input, dtype))
    return kernels.softmax(negated, _axis(dim, input.ndim)).reshape(input.shape)


def _infer_softmax2d(input: TensorSpec) -> TensorSpec:
    check_rank("input", input, 3, 4)
    return _infer_softmax(input, -3)


@layer("nn.Softmax2d", infer=_infer_softmax2d)
def softmax2d(input: Array) -> Array:
    """Compute softmax over the channels of (batch, channels, height, width), or of an image without batch."""
    return kernels.softmax(input, -3)
