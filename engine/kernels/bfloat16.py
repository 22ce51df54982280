"""bfloat16: the upper half of a float32, as an operand of products.

Rounding is to nearest, ties to even. NaN stays NaN and infinities stay infinite; numbers beyond the largest bfloat16
become that one, since an infinity would make NaN of sums that are finite in float32.

A compiled program is compared with the reference implementation. Where its kernels round the operands of products, so
do the layers that they are compared with: the two then differ by the order of float32 sums alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from engine.dtypes import Array

LARGEST = float(np.uint32(0x7F7F0000).view(np.float32))
"""The largest finite bfloat16."""
UNIT_ROUNDOFF = 2.0**-8
"""Largest relative error of rounding to bfloat16 (within its normal range)."""
_PART = 1 << 16
_rounds: ContextVar[bool] = ContextVar("rounds", default=False)


def bfloat16_bits(array: Array) -> Array:
    """Return the bits of float32 numbers rounded to bfloat16, as uint16 in the same shape."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    magnitude = bits & np.uint32(0x7FFFFFFF)
    sign = (bits >> np.uint32(16)) & np.uint32(0x8000)
    is_finite = magnitude < np.uint32(0x7F800000)
    too_large = is_finite & ((rounded & np.uint32(0x7FFF)) >= np.uint32(0x7F80))
    rounded = np.where(too_large, sign | np.uint32(0x7F7F), rounded)
    # of a NaN the upper half alone might be an infinity: a bit of it is set, which makes it NaN
    is_nan = magnitude > np.uint32(0x7F800000)
    rounded = np.where(is_nan, (bits >> np.uint32(16)) | np.uint32(0x40), rounded)
    return np.where(is_finite | is_nan, rounded, bits >> np.uint32(16)).astype(np.uint16)


def rounded_to_bfloat16(array: Array) -> Array:
    """Return float32 numbers rounded to bfloat16, as float32 in the same shape; a transposed matrix stays one."""
    if array.ndim == 2 and array.flags.f_contiguous:
        return _rounded(array.T).T
    return _rounded(array)


def _rounded(array: Array) -> Array:
    """Return the same in C order. What is made on the way is that of some numbers at a time."""
    numbers = np.ascontiguousarray(array, np.float32).reshape(-1)
    bits = np.empty(numbers.size, np.uint32)
    for start in range(0, numbers.size, _PART):
        bits[start : start + _PART] = bfloat16_bits(numbers[start : start + _PART])
    bits <<= np.uint32(16)
    return bits.view(np.float32).reshape(array.shape)


@contextmanager
def operands_rounded(rounds: bool = True) -> Iterator[None]:
    """Have the products of this thread round their float32 operands to bfloat16, or not."""
    token = _rounds.set(rounds)
    try:
        yield
    finally:
        _rounds.reset(token)


def rounds_operands() -> bool:
    """Whether the products of this thread round their operands."""
    return _rounds.get()


def operand(array: Array) -> Array:
    """Return an operand of a product, rounded on request."""
    return rounded_to_bfloat16(array) if rounds_operands() and array.dtype == np.float32 else array
