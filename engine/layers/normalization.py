"""Normalisation over the trailing dimensions, and over groups of channels."""

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import normalization as kernels
from engine.kernels.axes import axes
from engine.kernels.casting import narrow, widen
from engine.kernels.promotion import Dtype, computing_dtype
from engine.kernels.reductions import norm
from engine.layers.checks import check_channels, check_dtype, check_kind, check_min_rank, check_shape
from engine.spec import TensorSpec


def _check_normalized_shape(input: TensorSpec, normalized_shape: Ints) -> None:
    if not normalized_shape:
        raise ArgumentError("normalized_shape", "is empty", "at least one dimension")
    if input.shape[-len(normalized_shape) :] != normalized_shape:
        raise ArgumentError("input", f"shape {input.shape}", f"its last dimensions to be {normalized_shape}")


def _infer_layer_norm(
    input: TensorSpec, normalized_shape: Ints, weight: TensorSpec | None, bias: TensorSpec | None
) -> TensorSpec:
    check_kind("input", input, "f")
    _check_normalized_shape(input, normalized_shape)
    for name, spec in (("weight", weight), ("bias", bias)):
        check_shape(name, spec, normalized_shape)
        check_dtype(name, spec, input)
    return input


@layer("nn.LayerNorm", "F.layer_norm", infer=_infer_layer_norm)
def layer_norm(
    input: Array,
    normalized_shape: Ints,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Compute (x - mean) / √(variance + eps) · weight + bias over the last dimensions, `normalized_shape`."""
    return kernels.layer_norm(input, len(normalized_shape), weight, bias, eps)


def _infer_rms_norm(input: TensorSpec, normalized_shape: Ints, weight: TensorSpec | None) -> TensorSpec:
    check_kind("input", input, "fc")
    _check_normalized_shape(input, normalized_shape)
    check_shape("weight", weight, normalized_shape)
    check_dtype("weight", weight, input)
    return input


def _smallest(dtype: Dtype) -> float:
    """Return the distance from 1 to the next number, in the dtype computed in: eps where none is given."""
    return float(np.finfo(computing_dtype(dtype)).eps)


@layer("nn.RMSNorm", "F.rms_norm", infer=_infer_rms_norm)
def rms_norm(
    input: Array, normalized_shape: Ints, weight: Array | None = None, eps: float | None = None
) -> Array:
    """Compute x / √(mean(x²) + eps) · weight over the last dimensions, `normalized_shape`."""
    return kernels.rms_norm(
        input, len(normalized_shape), weight, _smallest(input.dtype) if eps is None else eps
    )


def _infer_group_norm(
    input: TensorSpec, num_groups: int, weight: TensorSpec | None, bias: TensorSpec | None
) -> TensorSpec:
    check_kind("input", input, "f")
    check_min_rank("input", input, 2)
    channels = input.shape[1]
    if num_groups < 1 or channels % num_groups:
        raise ArgumentError("num_groups", f"is {num_groups}", f"a divisor of the input's {channels} channels")
    check_channels(input, channels, weight=weight, bias=bias)
    if input.size == num_groups:
        raise ArgumentError("input", f"shape {input.shape}", "more than one element per group of channels")
    return input


@layer("nn.GroupNorm", "F.group_norm", infer=_infer_group_norm)
def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
) -> Array:
    """Give each group of channels mean 0 and variance 1, then scale and shift each channel (dimension 1)."""
    return kernels.group_norm(input, num_groups, weight, bias, eps)


def _infer_local_response_norm(input: TensorSpec, size: int) -> TensorSpec:
    check_kind("input", input, "f")
    check_min_rank("input", input, 3)
    if size < 1:
        raise ArgumentError("size", f"is {size}", "1 or more")
    return input


@layer("nn.LocalResponseNorm", "F.local_response_norm", infer=_infer_local_response_norm)
def local_response_norm(
    input: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """Compute x / (k + alpha · mean of x² over `size` neighbouring channels)^beta."""
    return kernels.local_response_norm(input, size, alpha, beta, k)


def _infer_normalize(input: TensorSpec, p: float, dim: Ints) -> TensorSpec:
    check_kind("input", input, "fc")
    lengths = [input.shape[axis] for axis in axes(dim, input.rank)]
    if np.isinf(p) and 0 in lengths:
        raise ArgumentError("p", f"is {p}", "a finite order, as the vectors are empty")
    return input


@layer("F.normalize", infer=_infer_normalize)
def normalize(input: Array, p: float = 2.0, dim: Ints = (1,), eps: float = 1e-12) -> Array:
    """Divide vectors along `dim` by their p-norm, or by `eps` where that is larger."""
    length = norm(input, p, axes(dim, input.ndim), keepdims=True)
    return narrow(widen(input) / np.maximum(length, eps), input.dtype)
