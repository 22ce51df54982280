"""What the elementwise functions are tried on: by the generator with PyTorch, by the tests with our kernels."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FLOATS = (0.0, -0.0, 0.1, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.7, -3.7, 12.0, -300.0)
_SPECIAL = (np.inf, -np.inf, np.nan)
_INTS = (-7, -2, -1, 0, 1, 2, 3, 7)
_COMPLEX = (0.5 + 1j, -1.25 + 0.25j, 2 - 1j, 0.125 - 2j, -0.5 - 0.75j)

DTYPES = (
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
"""The dtypes that both PyTorch and numpy have."""

SCALARS: dict[str, bool | int | float | complex] = {
    "a bool": True,
    "an int": 3,
    "a float": 2.5,
    "a complex": 1 - 2j,
}
"""One Python number of every kind."""


def values(dtype: str) -> Array:
    """Return a vector of telling values: signed zeros, halves, infinities, NaN, the extremes of integers."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind == "c":
        return np.array(_COMPLEX, dtype)
    if kind == "f":
        info = np.finfo(dtype)
        return np.array([*_FLOATS, *_SPECIAL, float(info.tiny), float(info.max)], dtype)
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, *(value for value in _INTS if value >= limits.min)], dtype)


def divisors(dtype: str) -> Array:
    """Return `values`, for integers without those that PyTorch does not divide by: 0, and -1 of the least integer."""
    array: Array = values(dtype)
    allowed: Array = array[array != 0]
    return allowed[allowed != -1] if array.dtype.kind == "i" else allowed


DIVISIONS = ("floor_divide", "fmod", "remainder")
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")


def pair(name: str, dtype: str) -> tuple[Array, Array]:
    """Return a column and a row that broadcast to every pair of values of one dtype.

    Integer division leaves out what PyTorch does not divide by; float division the largest float, whose quotients
    overflow in PyTorch's vector code.
    """
    left, right = values(dtype), values(dtype)
    if right.dtype.kind in "iu" and name in DIVISIONS:
        right = divisors(dtype)
    if right.dtype.kind == "f" and name in DIVISIONS:
        left = left[:-1]
    if name in SHIFTS and right.dtype.kind in "iu":
        right = np.array([0, 1, 5, right.dtype.itemsize * 8 - 1, right.dtype.itemsize * 8, 100], dtype)
    return left[:, None], right[None, :]


_BETWEEN_TENSORS = (
    (("int64", 1), ("float32", 1)),
    (("int32", 1), ("float16", 1)),
    (("float32", 1), ("float64", 1)),
    (("float16", 1), ("float32", 1)),
    (("float32", 1), ("float64", 0)),
    (("int32", 1), ("float64", 0)),
    (("float64", 0), ("float16", 1)),
    (("int64", 0), ("uint8", 1)),
    (("uint8", 1), ("int8", 1)),
    (("bool", 1), ("int16", 1)),
    (("float32", 0), ("float32", 0)),
    (("complex64", 1), ("float64", 1)),
)
_WITH_NUMBERS = (
    (("float16", 1), 0.1),
    (("float32", 1), 0.1),
    (("float32", 1), 3),
    (("float64", 1), 0.1),
    (("float32", 0), 0.1),
    (("float32", 1), 1 + 2j),
    (("int64", 1), 0.5),
    (("int64", 1), 3),
    (("uint8", 1), 250),
    (("int8", 1), 100),
    (("bool", 1), 2),
    (("bool", 1), 0.5),
    (("float32", 1), True),
    (0.1, ("float16", 1)),
    (2, ("float32", 1)),
    (2.5, ("int64", 1)),
    (3, ("int32", 1)),
    (-1, ("int64", 1)),
    (1.5, ("float32", 0)),
)
_ARITHMETIC = ("add", "sub", "mul", "div", "pow", "floor_divide", "remainder", "eq", "lt")

MIXED: tuple[tuple[str, Any, Any], ...] = tuple(
    (name, left, right) for name in (*_ARITHMETIC, "maximum", "atan2") for left, right in _BETWEEN_TENSORS
) + tuple(
    (name, left, right)
    for name in _ARITHMETIC
    for left, right in _WITH_NUMBERS
    if name != "div" or isinstance(left, tuple)
)
"""Operands of unlike kinds: (dtype, rank) for a tensor of `mixed_values`, else a number.

A number divided by a tensor is missing: PyTorch's `/` multiplies the reciprocal, and PNNX writes it so.
"""

POWERS = (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 2.5)
"""Exponents that PyTorch has short cuts for, and one that it has not."""


def mixed_values(dtype: str, rank: int) -> Array:
    """Return a vector of small values that no function divides by zero, or the first of them without dimensions."""
    array: Array = np.array([3, 1, 2, 5, 7], dtype)
    return array if rank else array[:1].reshape(())
