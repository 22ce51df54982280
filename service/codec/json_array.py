"""Converts arrays and numbers to values that JSON can represent."""

from math import isfinite, isnan
from typing import Any

import numpy as np

from engine import Array

NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""Names of the numbers that JSON cannot represent."""


def json_number(value: float | None) -> float | str | None:
    """Return a number, or its name if it is not finite."""
    if value is None or isfinite(value):
        return value
    if isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def json_data(array: Array) -> Any:
    """Return what the serialiser turns into nested lists of the array's shape.

    That is the array itself, in C order: no Python object is made per element. Only an array that holds NaN or
    infinities becomes lists, with names in their place. Complex elements become pairs [re, im].
    """
    if array.dtype.kind == "c":
        parts = np.empty((*array.shape, 2), array.real.dtype)
        parts[..., 0], parts[..., 1] = array.real, array.imag
        return json_data(parts)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return _with_names(array)
    if array.ndim == 0:
        return array.item()
    return np.ascontiguousarray(array, array.dtype.newbyteorder("="))


def _with_names(array: Array) -> Any:
    values = array.astype(object)
    for name, chosen in (
        ("NaN", np.isnan(array)),
        ("Infinity", np.isposinf(array)),
        ("-Infinity", np.isneginf(array)),
    ):
        values[chosen] = name
    return values.tolist()
