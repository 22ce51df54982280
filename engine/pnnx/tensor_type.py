"""Shapes and element types as PNNX spells them: `(1,3,?,224)f32`."""

from dataclasses import dataclass
from math import prod

from engine.dtypes import PNNX_STORAGE

ELEMENT_SIZES: dict[str, int] = {"null": 0} | {name: dtype.itemsize for name, dtype in PNNX_STORAGE.items()}
"""PNNX type name -> bytes of one stored element; `null` is PNNX's own name for no type."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type of an operand.

    Attributes:
        shape: extents; None is an extent that is known only at run time (`?`).
        dtype: PNNX type name: `f32`, `i64`, …, or `null` where the exporter knew none.
        symbols: (axis, name) of each unknown extent that carries a name (`%batch` instead of `?`).
    """

    shape: tuple[int | None, ...]
    dtype: str
    symbols: tuple[tuple[int, str], ...] = ()


def byte_count(shape: tuple[int, ...], dtype: str) -> int:
    """Return how many bytes a tensor of this shape and type is stored in."""
    return prod(shape) * ELEMENT_SIZES[dtype]
