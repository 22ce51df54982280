"""Quantization of real numbers, the way back, and joining of quantized tensors.

The exporter notes `torch.qint8` for every activation, whatever it was; the dtype that the file declares for an operand
is more reliable, and a zero point beyond int8 implies uint8.
"""

from typing import Any

import numpy as np

from engine.binding.arguments import DType
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import axis
from engine.kernels.quantization import check_quantization, quantize
from engine.layers.checks import check_kind
from engine.spec import QuantizedSpec, QuantizedTensor, Spec, TensorSpec, tensor_spec

_DTYPES: dict[str, DType] = {
    "torch.qint8": np.dtype(np.int8),
    "torch.quint8": np.dtype(np.uint8),
    "torch.qint32": np.dtype(np.int32),
    "12": np.dtype(np.int8),
    "13": np.dtype(np.uint8),
    "14": np.dtype(np.int32),
}
"""PyTorch's quantized dtypes, by name and by their numbers in traced code."""

_REAL = np.dtype(np.float32)


def quantized_dtype(dtype: str | int, zero_point: int, declared: DType | None) -> DType:
    """Return the dtype of a quantized tensor's integers.

    Raises:
        ArgumentError: `dtype` is not one of PyTorch's quantized ones.
    """
    if str(dtype) not in _DTYPES:
        raise ArgumentError("dtype", f"got {dtype!r}", f"one of {', '.join(_DTYPES)}")
    if declared is not None and declared.name in ("int8", "uint8", "int32"):
        return declared
    beyond = zero_point > np.iinfo(np.int8).max
    chosen = _DTYPES[str(dtype)]
    return np.dtype(np.uint8) if beyond and chosen == np.int8 else chosen


def _infer_quantize(
    input: TensorSpec, scale: float, zero_point: int, dtype: str | int, output_dtype: DType | None
) -> QuantizedSpec:
    check_kind("input", input, "f")
    integers = quantized_dtype(dtype, zero_point, output_dtype)
    check_quantization(scale, zero_point, integers)
    return QuantizedSpec(input.shape, integers)


@layer(
    *("nn.quantized.Quantize", "torch.quantize_per_tensor", "aten::quantize_per_tensor"),
    infer=_infer_quantize,
)
def quantize_tensor(
    input: Array,
    scale: float,
    zero_point: int,
    dtype: str | int = "torch.quint8",
    output_dtype: DType | None = None,
) -> QuantizedTensor:
    """Quantize: round x / scale + zero point half to even, saturated."""
    spec = _infer_quantize(tensor_spec(input), scale, zero_point, dtype, output_dtype)
    return QuantizedTensor(quantize(input, scale, zero_point, spec.dtype), scale, zero_point)


def _infer_dequantize(input: TensorSpec) -> TensorSpec:
    check_kind("input", input, "fiub")
    return TensorSpec(input.shape, _REAL)


@layer("nn.quantized.DeQuantize", "torch.dequantize", infer=_infer_dequantize, takes_quantized=True)
def dequantize_tensor(input: QuantizedTensor | Array) -> Array:
    """Dequantize a tensor to float32; a tensor of real numbers is unchanged."""
    if isinstance(input, QuantizedTensor):
        return input.real()
    _infer_dequantize(tensor_spec(input))
    return input.astype(_REAL, copy=False)


def _joined(tensors: tuple[Any, ...], kind: type[Any]) -> list[Any]:
    """Return the tensors to join: the operands, or the members of the one list among them."""
    members = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors
    for place, member in enumerate(members):
        if not isinstance(member, kind):
            raise ArgumentError(f"inputs.{place}", "is not quantized", "a quantized tensor")
    if not members:
        raise ArgumentError("tensors", "got none", "at least one quantized tensor")
    return list(members)


def _infer_cat(*tensors: Spec, dim: int, scale: float, zero_point: int) -> QuantizedSpec:
    members = _joined(tensors, QuantizedSpec)
    first: QuantizedSpec = members[0]
    if not first.rank:
        raise ArgumentError("inputs.0", "has no axes", "a tensor with axes")
    along = axis(dim, first.rank)
    for place, member in enumerate(members):
        sizes = (*member.shape[:along], *first.shape[along : along + 1], *member.shape[along + 1 :])
        if member.dtype != first.dtype or member.rank != first.rank or sizes != first.shape:
            raise ArgumentError(f"inputs.{place}", f"is {member}", f"like {first}, but for axis {along}")
    check_quantization(scale, zero_point, first.dtype)
    total = sum(member.shape[along] for member in members)
    return first.with_shape((*first.shape[:along], total, *first.shape[along + 1 :]))


@layer("nn.quantized.cat", infer=_infer_cat, takes_quantized=True)
def join_quantized(*tensors: Any, dim: int = 0, scale: float, zero_point: int) -> QuantizedTensor:
    """Join quantized tensors along an axis, requantized with one scale and zero point."""
    members = _joined(tensors, QuantizedTensor)
    specs = [QuantizedSpec(member.values.shape, member.values.dtype) for member in members]
    dtype = _infer_cat(*specs, dim=dim, scale=scale, zero_point=zero_point).dtype
    parts = [quantize(member.real(), scale, zero_point, dtype) for member in members]
    return QuantizedTensor(np.concatenate(parts, axis(dim, parts[0].ndim)), scale, zero_point)
