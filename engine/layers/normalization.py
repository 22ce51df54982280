"""Normalisation over the trailing dimensions, and over groups of channels."""

import numpy as np

from engine.arguments import Ints
from engine.checks import check_dtype, check_kind, check_shape
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import normalization as kernels
from engine.kernels.promotion import Dtype, computing_dtype
from engine.registry import layer
from engine.spec import TensorSpec


def _check_normalized_shape(input: TensorSpec, normalized_shape: Ints) -> None:
    if not normalized_shape:
        raise ArgumentError("normalized_shape", "is empty", "at least one dimension")
    if input.shape[-len(normalized_shape) :] != normalized_shape:
        raise ArgumentError("input", f"shape {input.shape}", f"its last dimensions to be {normalized_shape}")


def _infer_layer_norm(
    input: TensorSpec, normalized_shape: Ints, weight: TensorSpec | None, bias: TensorSpec | None, eps: float
) -> TensorSpec:
    del eps
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


def _infer_rms_norm(
    input: TensorSpec, normalized_shape: Ints, weight: TensorSpec | None, eps: float | None
) -> TensorSpec:
    del eps
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
