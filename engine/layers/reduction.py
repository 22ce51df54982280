"""Layers that reduce dimensions to one value each: mean and kin."""

import numpy as np

from engine.arguments import DType, Ints
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axes, reduced_shape
from engine.kernels.promotion import computing_dtype
from engine.registry import layer
from engine.spec import TensorSpec


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
    computed = np.mean(input, axes(dim, input.ndim), computing_dtype(result), keepdims=keepdim)
    return np.asarray(computed).astype(result, copy=False)
