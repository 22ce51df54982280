"""Values of operands, and their specs at compile time: the shape and dtype of a tensor, the value of a scalar."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from engine.dtypes import Array, pnnx_name
from engine.kernels.quantization import dequantize


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedTensor:
    """Quantized tensor of real numbers: (value - zero_point) * scale.

    Attributes:
        values: int8, uint8 or int32; read-only by agreement, as every operand is.
        scale: the scale.
        zero_point: the integer of zero.
    """

    values: Array
    scale: float
    zero_point: int

    def real(self) -> Array:
        """Dequantize to float32."""
        return dequantize(self.values, self.scale, self.zero_point)


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of a tensor."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take."""
        return self.size * self.dtype.itemsize

    def with_shape(self, shape: Sequence[int]) -> "TensorSpec":
        """Return this spec with another shape."""
        return TensorSpec(tuple(shape), self.dtype)

    def __str__(self) -> str:
        return f"({','.join(map(str, self.shape))}){pnnx_name(self.dtype)}"


@dataclass(frozen=True, slots=True)
class QuantizedSpec(TensorSpec):
    """Shape and integer dtype of a quantized tensor."""

    def with_shape(self, shape: Sequence[int]) -> "QuantizedSpec":
        """Return this spec with another shape."""
        return QuantizedSpec(tuple(shape), self.dtype)

    def __str__(self) -> str:
        return f"quantized {TensorSpec(self.shape, self.dtype)}"


class _Unknown(Enum):
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


UNKNOWN: Final = _Unknown.UNKNOWN
"""Spec of a value whose shape depends on the data, or that comes from a layer without a shape rule."""

Unknown: TypeAlias = _Unknown
Scalar: TypeAlias = bool | int | float | complex | str | None
Value: TypeAlias = "Array | QuantizedTensor | Scalar | tuple[Value, ...] | list[Value]"
"""Run-time value of an operand: a tensor, a quantized one, a Python scalar, or a tuple or list of values."""
Spec: TypeAlias = "TensorSpec | Unknown | Scalar | tuple[Spec, ...] | list[Spec]"
"""Compile-time spec of an operand: a `TensorSpec`, or the scalar itself."""


_MEMBERS_SHOWN = 8


def tensor_spec(array: Array) -> TensorSpec:
    """Return the spec of a tensor."""
    return TensorSpec(array.shape, array.dtype)


def spec_of(value: Value) -> Spec:
    """Return the spec of a value."""
    if isinstance(value, np.ndarray):
        return tensor_spec(value)
    if isinstance(value, QuantizedTensor):
        return QuantizedSpec(value.values.shape, value.values.dtype)
    if isinstance(value, tuple | list):
        return tuple(spec_of(item) for item in value)
    return value


def spell(spec: Spec) -> str:
    """Word a spec for a message; of a long tuple its first members."""
    if isinstance(spec, tuple | list):
        members = [spell(member) for member in spec[:_MEMBERS_SHOWN]]
        if len(spec) > _MEMBERS_SHOWN:
            members.append("…")
        return f"({', '.join(members)}{',' if len(spec) == 1 else ''})"
    return repr(spec) if isinstance(spec, str) else str(spec)


def is_known(spec: Spec) -> bool:
    """Return whether a spec is fully known."""
    if isinstance(spec, tuple | list):
        return all(is_known(item) for item in spec)
    return spec is not UNKNOWN


def tensor_specs(spec: Spec) -> Iterator[TensorSpec]:
    """Yield the tensors in a spec, nested tuples flattened in order."""
    if isinstance(spec, TensorSpec):
        yield spec
    elif isinstance(spec, tuple | list):
        for item in spec:
            yield from tensor_specs(item)


def arrays_in(value: Value) -> Iterator[Array]:
    """Yield the tensors in a value, nested tuples flattened in order."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, QuantizedTensor):
        yield value.values
    elif isinstance(value, tuple | list):
        for item in value:
            yield from arrays_in(item)
