"""PyTorch's type promotion, over numpy dtypes.

Two things decide the dtype of a result: the category of each operand (bool < int < float < complex) and what
kind of operand it is. Within one category a tensor with dimensions outranks a tensor without, which outranks a
Python scalar; only a higher category lets a weaker operand change the dtype.

Source: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc. complex32 has no numpy dtype;
complex64 replaces it.
"""

from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

Dtype: TypeAlias = np.dtype[Any]
PythonScalar: TypeAlias = bool | int | float | complex

BOOL: Dtype = np.dtype(np.bool_)
INT64: Dtype = np.dtype(np.int64)
FLOAT16: Dtype = np.dtype(np.float16)
FLOAT32: Dtype = np.dtype(np.float32)
FLOAT64: Dtype = np.dtype(np.float64)
COMPLEX64: Dtype = np.dtype(np.complex64)
COMPLEX128: Dtype = np.dtype(np.complex128)

_SCALAR_DTYPES: dict[type, Dtype] = {bool: BOOL, int: INT64, float: FLOAT32, complex: COMPLEX64}


class TensorLike(Protocol):
    """Anything with a shape and a dtype: an array, or the spec of one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents; an empty tuple for a tensor without dimensions."""

    @property
    def dtype(self) -> Dtype:
        """Its element type."""


def real_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype of the parts of complex numbers; any other dtype as it is."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def scalar_dtype(value: PythonScalar) -> Dtype:
    """Return the dtype PyTorch gives a Python number: bool, int64, float32 (the default dtype) or complex64."""
    return _SCALAR_DTYPES[type(value)]


@cache
def promote(a: Dtype, b: Dtype) -> Dtype:
    """Return the dtype of two operands of the same rank class.

    Unlike numpy, an integer never widens a float: int64 with float16 is float16.
    """
    if a.kind in "biu" and b.kind in "fc":
        return b
    if b.kind in "biu" and a.kind in "fc":
        return a
    return np.promote_types(a, b)


def result_type(*operands: TensorLike | PythonScalar) -> Dtype:
    """Return the dtype PyTorch computes `operands` in, as `torch.result_type` does for two.

    Args:
        operands: arrays, tensor specs and Python numbers, at least one.
    """
    ranked: list[Dtype | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, bool | int | float | complex):
            rank, dtype = 2, scalar_dtype(operand)
        else:
            rank, dtype = (0 if operand.shape else 1), operand.dtype
        known = ranked[rank]
        ranked[rank] = dtype if known is None else promote(known, dtype)
    result = _combine(_combine(ranked[0], ranked[1]), ranked[2])
    if result is None:
        raise ValueError("result_type needs at least one operand")
    return result


def _combine(strong: Dtype | None, weak: Dtype | None) -> Dtype | None:
    """Let `weak` raise the category of `strong`, and nothing else."""
    if strong is None or weak is None:
        return weak if strong is None else strong
    if strong.kind == "c":
        return strong
    if strong.kind == "f":
        return _complex_of(strong) if weak.kind == "c" else strong
    return promote(strong, weak) if strong.kind == "b" or weak.kind in "fc" else strong


def _complex_of(dtype: Dtype) -> Dtype:
    return COMPLEX128 if dtype.itemsize == 8 else COMPLEX64


def computing_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype PyTorch does arithmetic in: float32 for float16, else `dtype` itself."""
    return FLOAT32 if dtype == FLOAT16 else dtype


def floating(dtype: Dtype) -> Dtype:
    """Return `dtype` if it is float or complex, else float32, the default dtype."""
    return dtype if dtype.kind in "fc" else FLOAT32
