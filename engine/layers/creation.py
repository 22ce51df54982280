"""Creation of tensors from a shape: zeros, full, arange and similar.

What PyTorch leaves uninitialised (empty) is zero here: a run must not depend on what was in memory before.
"""

import math

import numpy as np

from engine.binding.arguments import DType, Ints, Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import MAX_ELEMENTS, checked_shape
from engine.kernels.casting import cast
from engine.kernels.promotion import FLOAT32, result_type, scalar_dtype
from engine.layers.view_rules import view_layer
from engine.spec import TensorSpec


def _filled(shape: tuple[int, ...], value: Number | bool | Array, dtype: DType) -> Array:
    """Return a view of one element, which no layer writes to."""
    if np.ndim(value):
        expected = "a number or a tensor without dimensions"
        raise ArgumentError("fill_value", f"got {np.ndim(value)} dimensions", expected)
    return np.broadcast_to(cast(np.asarray(value), dtype), checked_shape(shape))


@view_layer("torch.zeros", "torch.empty")
def zeros(size: Ints, dtype: DType | None = None) -> Array:
    """Give zeros; float32 unless `dtype` is given."""
    return _filled(size, 0, dtype or FLOAT32)


@view_layer("torch.ones")
def ones(size: Ints, dtype: DType | None = None) -> Array:
    """Give ones; float32 unless `dtype` is given."""
    return _filled(size, 1, dtype or FLOAT32)


def _dtype_of(value: Array | Number | bool) -> DType:
    return value.dtype if isinstance(value, np.ndarray) else scalar_dtype(value)


@view_layer("torch.full")
def full(size: Ints, fill_value: Array | Number | bool, dtype: DType | None = None) -> Array:
    """Give one value everywhere, in its own dtype unless `dtype` is given."""
    return _filled(size, fill_value, dtype or _dtype_of(fill_value))


@view_layer("torch.zeros_like", "torch.empty_like")
def zeros_like(input: Array, dtype: DType | None = None) -> Array:
    """Give zeros in the shape, and unless `dtype` is given the dtype, of `input`."""
    return _filled(input.shape, 0, dtype or input.dtype)


@view_layer("torch.ones_like")
def ones_like(input: Array, dtype: DType | None = None) -> Array:
    """Give ones in the shape, and unless `dtype` is given the dtype, of `input`."""
    return _filled(input.shape, 1, dtype or input.dtype)


@view_layer("torch.full_like")
def full_like(input: Array, fill_value: Array | Number | bool, dtype: DType | None = None) -> Array:
    """Give one value in the shape, and unless `dtype` is given the dtype, of `input`."""
    return _filled(input.shape, fill_value, dtype or input.dtype)


@view_layer("Tensor.new_zeros", "Tensor.new_empty")
def new_zeros(input: Array, size: Ints, dtype: DType | None = None) -> Array:
    """Give zeros in the dtype of `input` unless `dtype` is given."""
    return _filled(size, 0, dtype or input.dtype)


@view_layer("Tensor.new_ones")
def new_ones(input: Array, size: Ints, dtype: DType | None = None) -> Array:
    """Give ones in the dtype of `input` unless `dtype` is given."""
    return _filled(size, 1, dtype or input.dtype)


@view_layer("Tensor.new_full")
def new_full(
    input: Array, size: Ints, fill_value: Array | Number | bool, dtype: DType | None = None
) -> Array:
    """Give one value everywhere, in the dtype of `input` unless `dtype` is given."""
    return _filled(size, fill_value, dtype or input.dtype)


def _range_length(start: float, end: float, step: float) -> int:
    if step == 0 or not all(map(math.isfinite, (start, end, step))):
        raise ArgumentError(
            "step", f"got from {start} to {end} by {step}", "finite numbers, and a step that is not 0"
        )
    span = end - start
    if span and (span > 0) != (step > 0):
        raise ArgumentError("step", f"got {step} from {start} to {end}", "a step towards the end")
    whole = all(isinstance(bound, int) for bound in (start, end, step))
    length = -(-span // step) if whole else np.ceil(span / step)
    if length > MAX_ELEMENTS:
        raise ArgumentError("end", f"makes {length} elements", f"at most {MAX_ELEMENTS}")
    return int(length)


def _infer_arange(start: float, end: float | None, step: float, dtype: DType | None) -> TensorSpec:
    first, last = (0, start) if end is None else (start, end)
    return TensorSpec((_range_length(first, last, step),), dtype or result_type(first, last, step))


@layer("torch.arange", infer=_infer_arange)
def arange(
    start: int | float = 0, end: int | float | None = None, step: int | float = 1, dtype: DType | None = None
) -> Array:
    """Count from `start` up to `end`, which is left out; int64 if all three are ints, else float32."""
    first, last = (0, start) if end is None else (start, end)
    result = dtype or result_type(first, last, step)
    places = np.arange(_range_length(first, last, step))
    if result.kind in "iu":  # fractions count for the length, but not for the elements
        first, step = int(first), int(step)
    return cast(np.asarray(first + places * step), result)
