"""Converts numbers in JSON to arrays.

Numbers are checked by the set of their types and converted in one call; elements are looked at one by one only if a
tensor contains the names of NaN or of the infinities.
"""

from array import array
from collections.abc import Collection
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from engine import Array, pnnx_name
from service.codec.conversion import convert, out_of_range, to_integers
from service.codec.json_numbers import MAX_RANK, NAME, Numbers, flatten
from service.config.limits import Limits
from service.errors import ServiceError
from service.images.url import URL_ADVICE, is_url

_JSON_NAMES = {
    "str": "a string",
    NAME: "a string",
    "bool": "a boolean",
    "NoneType": "null",
    "dict": "an object",
    "list": "a list",
}


def parse_shape(value: Any, place: str) -> tuple[int, ...]:
    """Read the shape of a tensor.

    Raises:
        ServiceError: 400 `invalid_tensor`.
    """
    sound = isinstance(value, list) and len(value) <= MAX_RANK
    if not sound or not all(type(dim) is int and 0 <= dim < 1 << 62 for dim in value):
        shown = repr(value[:80] if isinstance(value, list) else value)[:80]
        raise invalid(place, f"shape is {shown}", f"a list of at most {MAX_RANK} whole numbers from 0")
    return tuple(value)


def parse_data(
    data: Any, shape: tuple[int, ...] | None, dtype: np.dtype[Any] | None, limits: Limits, place: str
) -> Array:
    """Make an array of JSON data.

    Args:
        data: nested lists, a flat list in row-major order, either as `Numbers`, or one number for a tensor of rank 0.
        shape: what the request says; None takes the nesting's.
        dtype: None takes that of the numbers: bool, int64 or float32.
        limits: how many elements are too many.
        place: the tensor's name for messages.

    Raises:
        ServiceError: 400 `invalid_tensor`, 413 `tensor_too_large`, 422 `out_of_range`.
    """
    if shape is not None:
        limits.check_shape(shape, place)
    if dtype is not None and dtype.kind == "f" and isinstance(data, list):
        floats = _plain_floats(data, limits)
        if floats is not None:
            values = convert(floats.reshape(-1), dtype, place)
            return values.reshape(_agreed(shape, floats.shape, place))
    numbers = data if isinstance(data, Numbers) else flatten(data, limits.tensor_elements * 2)
    if numbers.problem is not None:
        raise invalid(place, *numbers.problem)
    if "str" in numbers.kinds and is_url(_first(data)):
        raise invalid(place, "data holds a URL", f"numbers; {URL_ADVICE}")
    nesting, chosen = numbers.nesting, _natural_dtype(numbers.kinds) if dtype is None else dtype
    if chosen.kind == "c" and numbers.kinds:
        if not nesting or nesting[-1] != 2:
            raise invalid(place, f"data is nested {list(nesting)}", "pairs [re, im] for complex numbers")
        nesting = nesting[:-1]
    limits.check_shape(nesting, place)
    return _values(numbers, chosen, place).reshape(_agreed(shape, nesting, place))


def _first(data: Any) -> Any:
    """Return the first element of nested lists."""
    while isinstance(data, list) and data:
        data = data[0]
    return data


def invalid(place: str, problem: str, expected: str) -> ServiceError:
    """Return the error for a tensor that cannot be read."""
    message = f"{place}: {problem}; expected {expected}"
    return ServiceError(400, "invalid_tensor", message, {"expected": expected})


def _plain_floats(data: list[Any], limits: Limits) -> Array | None:
    """Convert lists of nothing but floats and whole numbers to float64, in half the time that looking at each takes.

    Returns None if they hold anything else, are uneven or too many; `flatten` finds out what is wrong.
    """
    shape, level = [len(data)], data
    while level and type(level[0]) is list:
        lengths = set(map(len, level)) if set(map(type, level)) == {list} else set()
        if len(lengths) != 1 or len(shape) >= MAX_RANK:
            return None
        shape.append(lengths.pop())
        if prod(max(dim, 1) for dim in shape) > limits.tensor_elements:
            return None
        level = list(chain.from_iterable(level))
    if len(level) > limits.tensor_elements:
        return None
    values = _floats_alone(level)
    return None if values is None else values.reshape(shape)


def _floats_alone(elements: list[Any]) -> Array | None:
    """Convert floats and whole numbers to float64; returns None if there is anything else among them."""
    try:
        values = np.frombuffer(array("d", elements))
    except (TypeError, OverflowError):
        return None
    return None if _holds_booleans(elements, values) else values


def _holds_booleans(elements: list[Any], values: Array) -> bool:
    """Return whether there are booleans among numbers; only zeros and ones need to be looked at."""
    suspects = np.flatnonzero((values == 0) | (values == 1)).tolist()
    if len(suspects) < len(elements) // 2:
        elements = [elements[index] for index in suspects]
    return bool in set(map(type, elements))


def _agreed(shape: tuple[int, ...] | None, nesting: tuple[int, ...], place: str) -> tuple[int, ...]:
    """Return the given shape if the data's nesting agrees with it or is flat, or the nesting if no shape is given.

    Lists cannot show what lies below an empty dimension: there only the count has to agree.
    """
    if shape is None or shape == nesting:
        return nesting
    if prod(nesting) == prod(shape) and (len(nesting) == 1 or prod(shape) == 0):
        return shape
    raise invalid(
        place,
        f"shape is {list(shape)}, but data is nested {list(nesting)}",
        f"that nesting, or {prod(shape)} elements in one list",
    )


def _natural_dtype(kinds: Collection[str]) -> np.dtype[Any]:
    if kinds == {"bool"}:
        return np.dtype(np.bool_)
    return np.dtype(np.int64) if kinds == {"int"} else np.dtype(np.float32)


def _values(numbers: Numbers, dtype: np.dtype[Any], place: str) -> Array:
    """Return the elements in a dtype."""
    taken = {"b": {"bool", "int"}, "i": {"int", "float"}, "u": {"int", "float"}}
    _check_kinds(numbers.kinds, taken.get(dtype.kind, {"int", "float", NAME}), dtype, place)
    values = numbers.values
    if values is None:
        raise out_of_range(place, np.dtype(np.float64))
    if dtype.kind == "b":
        if not ((values == 0) | (values == 1)).all():
            raise invalid(place, "a number other than 0 and 1 for bool", "true, false, 1 or 0")
        return values.astype(np.bool_)
    if dtype.kind in "iu":
        return _integers(values, numbers.kinds, dtype, place)
    floats = values.astype(np.float64, copy=False)
    return convert(floats.view(np.complex128) if dtype.kind == "c" else floats, dtype, place)


def _integers(values: Array, kinds: Collection[str], dtype: np.dtype[Any], place: str) -> Array:
    if values.dtype.kind == "f":
        if "float" not in kinds and values.size:
            raise out_of_range(place, dtype)  # whole numbers that no integer dtype holds
        if not (np.isfinite(values) & (values == np.trunc(values))).all():
            raise invalid(place, f"a fraction for {pnnx_name(dtype)}", "whole numbers")
    return to_integers(values, dtype, place)


def _check_kinds(kinds: Collection[str], taken: set[str], dtype: np.dtype[Any], place: str) -> None:
    for kind in sorted(set(kinds) - taken):
        name = _JSON_NAMES.get(kind, "a number")
        if kind == "str" and dtype.kind == "f":
            name += " that is not NaN, Infinity or -Infinity"
        raise invalid(place, f"data holds {name}", "booleans" if "bool" in taken else "numbers")
