"""Converts arrays to other dtypes of the same kind."""

from typing import Any

import numpy as np

from engine import Array, pnnx_name
from service.errors import ServiceError

_FAMILIES = {
    "f": "floats",
    "i": "whole numbers",
    "u": "whole numbers",
    "c": "complex numbers",
    "b": "booleans",
}


def convert(array: Array, dtype: np.dtype[Any], place: str) -> Array:
    """Return an array in another dtype of its family: floats, whole numbers, complex numbers or booleans.

    Floats of another width are rounded to the nearest; byte order is made the machine's.

    Raises:
        ServiceError: 422 `wrong_dtype` for another family, 422 `out_of_range` for a number too large for `dtype`.
    """
    if array.dtype == dtype:
        return array
    if _FAMILIES.get(array.dtype.kind) != _FAMILIES[dtype.kind]:
        wanted = pnnx_name(dtype)
        message = f"{place} is {pnnx_name(array.dtype)}; expected {wanted} ({_FAMILIES[dtype.kind]})"
        raise ServiceError(422, "wrong_dtype", message, {"dtype": pnnx_name(array.dtype), "expected": wanted})
    if dtype.kind in "iu":
        return to_integers(array, dtype, place)
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    if dtype.itemsize < array.dtype.itemsize and (np.isinf(converted) & ~np.isinf(array)).any():
        raise out_of_range(place, dtype)
    return converted


def to_integers(array: Array, dtype: np.dtype[Any], place: str) -> Array:
    """Convert whole numbers, which integers or floats hold, to an integer dtype.

    Raises:
        ServiceError: 422 `out_of_range`.
    """
    bounds = np.iinfo(dtype)
    if array.size and not bounds.min <= int(array.min()) <= int(array.max()) <= bounds.max:
        raise out_of_range(place, dtype)
    return array.astype(dtype)


def out_of_range(place: str, dtype: np.dtype[Any]) -> ServiceError:
    """Return the error for a number that a dtype cannot hold."""
    limits: dict[str, Any] = {"dtype": pnnx_name(dtype)}
    if dtype.kind in "iu":
        limits |= {"minimum": int(np.iinfo(dtype).min), "maximum": int(np.iinfo(dtype).max)}
    else:
        limits |= {"maximum": float(np.finfo(dtype).max)}
    message = f"{place} holds a number out of range for {pnnx_name(dtype)}"
    return ServiceError(422, "out_of_range", message, limits)
