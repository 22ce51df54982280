"""Runs layers without quantization support on quantized tensors, as PyTorch does.

They get the dequantized numbers, and their results are requantized with the scale and zero point of the first quantized
input. Reshaping, pooling, clamping and the like preserve those, so that the round trip is exact.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from engine.kernels.quantization import quantize
from engine.spec import QuantizedSpec, QuantizedTensor, TensorSpec

Kind = TypeVar("Kind")

RANGES = {
    **dict.fromkeys(("F.sigmoid", "nn.Sigmoid", "F.hardsigmoid", "nn.Hardsigmoid"), (1 / 256, 0)),
    **dict.fromkeys(("F.tanh", "nn.Tanh"), (1 / 128, 128)),
}
"""Type -> scale of its results, whatever that of its input, and how far zero is above the lowest integer."""

_REAL = np.dtype(np.float32)


def first_of(kind: type[Kind], items: Sequence[Any]) -> Kind | None:
    """Return the first value or spec of a kind, among the members of tuples as well."""
    for item in items:
        if isinstance(item, np.ndarray):  # nearly always, and checked at every operator of every run
            continue
        if isinstance(item, kind):
            return item
        if isinstance(item, tuple | list) and (found := first_of(kind, item)) is not None:
            return found
    return None


def to_real(item: Any) -> Any:
    """Return a value, or the spec of one, with real numbers in place of quantized tensors."""
    if isinstance(item, QuantizedTensor):
        return item.real()
    if isinstance(item, QuantizedSpec):
        return TensorSpec(item.shape, _REAL)
    if isinstance(item, tuple | list):
        return type(item)(to_real(member) for member in item)
    return item


def requantized(type_name: str, result: Any, source: QuantizedTensor) -> Any:
    """Return what a layer of a type gave with float32 tensors quantized as `source` is, others as they are."""
    if isinstance(result, tuple | list):
        return type(result)(requantized(type_name, member, source) for member in result)
    if not isinstance(result, np.ndarray) or result.dtype != _REAL:
        return result
    dtype = source.values.dtype
    scale, zero_point = source.scale, source.zero_point
    if type_name in RANGES and dtype.itemsize == 1:
        scale, above_lowest = RANGES[type_name]
        zero_point = int(np.iinfo(dtype).min) + above_lowest
    return QuantizedTensor(quantize(result, scale, zero_point, dtype), scale, zero_point)


def requantized_spec(result: Any, source: QuantizedSpec) -> Any:
    """Return the spec of what `requantized` gives."""
    if isinstance(result, tuple | list):
        return type(result)(requantized_spec(member, source) for member in result)
    if isinstance(result, TensorSpec) and result.dtype == _REAL:
        return QuantizedSpec(result.shape, source.dtype)
    return result
