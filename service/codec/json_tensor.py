"""Converts numbers in JSON to arrays.

Numbers are checked by the set of their types and converted in one call; elements are looked at one by one only if a
tensor contains the names of NaN or of the infinities.
"""

from array import array
from itertools import chain
from math import prod
from typing import Any

import numpy as np

from engine import Array, pnnx_name
from service.codec.conversion import convert, out_of_range, to_integers
from service.codec.json_array import NOT_FINITE
from service.codec.number_text import NumberText
from service.config.limits import Limits
from service.errors import ServiceError
from service.heavy_work import turns_for

MAX_RANK = 32

_JSON_NAMES = {str: "a string", bool: "a boolean", type(None): "null", dict: "an object", list: "a list"}


def parse_shape(value: Any, place: str) -> tuple[int, ...]:
    """Read the shape of a tensor.

    Raises:
        ServiceError: 400 `invalid_tensor`.
    """
    sound = isinstance(value, list) and len(value) <= MAX_RANK
    if not sound or not all(type(dim) is int and 0 <= dim < 1 << 62 for dim in value):
        shown = repr(value)[:80]
        raise invalid(place, f"shape is {shown}", f"a list of at most {MAX_RANK} whole numbers from 0")
    return tuple(value)


def parse_data(
    data: Any, shape: tuple[int, ...] | None, dtype: np.dtype[Any] | None, limits: Limits, place: str
) -> Array:
    """Make an array of JSON data.

    Args:
        data: nested lists, a flat list in row-major order, the text of either, or one number for a tensor of rank 0.
        shape: what the request says; None takes the nesting's.
        dtype: None takes that of the numbers: bool, int64 or float32.
        limits: how many elements are too many.
        place: the tensor's name for messages.

    Raises:
        ServiceError: 400 `invalid_tensor`, 413 `tensor_too_large`, 422 `out_of_range`.
    """
    if shape is not None:
        limits.check_shape(shape, place)
    if isinstance(data, NumberText):
        with turns_for(data.size):
            return _parse_text(data, shape, dtype, limits, place)
    if dtype is not None and dtype.kind == "f" and isinstance(data, list):
        floats = _plain_floats(data, limits)
        if floats is not None:
            values = convert(floats.reshape(-1), dtype, place)
            return values.reshape(_agreed(shape, floats.shape, place))
    nesting, flat, kinds = _flatten(data, limits.tensor_elements * 2, place)
    chosen = _natural_dtype(kinds) if dtype is None else dtype
    if chosen.kind == "c" and flat:
        if not nesting or nesting[-1] != 2:
            raise invalid(place, f"data is nested {list(nesting)}", "pairs [re, im] for complex numbers")
        nesting = nesting[:-1]
    limits.check_shape(nesting, place)
    values = _values(flat, kinds, chosen, place)
    return values.reshape(_agreed(shape, nesting, place))


def invalid(place: str, problem: str, expected: str) -> ServiceError:
    """Return the error for a tensor that cannot be read."""
    message = f"{place}: {problem}; expected {expected}"
    return ServiceError(400, "invalid_tensor", message, {"expected": expected})


def _parse_text(
    text: NumberText, shape: tuple[int, ...] | None, dtype: np.dtype[Any] | None, limits: Limits, place: str
) -> Array:
    """Make an array of numbers that are still text, piece by piece, after checking how many there are."""
    nesting = text.shape(place)
    if prod(nesting) > 2 * limits.tensor_elements:  # twice, as complex numbers are pairs
        limits.check_shape(nesting, place)
    chosen = _text_dtype(text, place) if dtype is None else dtype
    target = nesting
    if chosen.kind == "c":
        if nesting[-1] != 2:
            raise invalid(place, f"data is nested {list(nesting)}", "pairs [re, im] for complex numbers")
        target = nesting[:-1]
    limits.check_shape(target, place)
    agreed = _agreed(shape, target, place)
    part = np.empty(0, chosen).real.dtype
    flat, filled = np.empty(prod(nesting), part), 0
    for elements in text.elements(place):
        stop = filled + len(elements)
        flat[filled:stop] = _converted(elements, part, place)
        filled = stop
    if filled != flat.size:
        raise invalid(place, "data has a comma that no number follows", "numbers with commas between them")
    return flat.view(chosen).reshape(agreed)


def _converted(elements: list[Any], dtype: np.dtype[Any], place: str) -> Array:
    """Convert elements of a flat list; those that are nothing but numbers in half the time."""
    floats = _floats_alone(elements) if dtype.kind == "f" else None
    if floats is None:
        return _values(elements, set(map(type, elements)), dtype, place)
    return convert(floats, dtype, place)


def _text_dtype(text: NumberText, place: str) -> np.dtype[Any]:
    kinds: set[type] = set()
    for elements in text.elements(place):
        kinds.update(map(type, elements))
    return _natural_dtype(kinds)


def _plain_floats(data: list[Any], limits: Limits) -> Array | None:
    """Convert lists of nothing but floats and whole numbers to float64, in half the time that looking at each takes.

    Returns None if they hold anything else, are uneven or too many; `_flatten` finds out what is wrong.
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


def _flatten(data: Any, limit: int, place: str) -> tuple[tuple[int, ...], list[Any], set[type]]:
    """Return the nesting of lists, as a shape, their elements in row-major order, and the elements' types."""
    if not isinstance(data, list):
        return (), [data], {type(data)}
    shape, level = [len(data)], data
    while list in (kinds := set(map(type, level))):
        lengths = set(map(len, level)) if len(kinds) == 1 else set()
        if len(lengths) != 1:
            raise invalid(place, f"lists differ in depth or length at depth {len(shape) + 1}", "equal ones")
        shape.append(lengths.pop())
        if len(shape) > MAX_RANK + 1:
            raise invalid(place, f"data is nested more than {MAX_RANK} deep", "fewer dimensions")
        if prod(max(dim, 1) for dim in shape) > limit:
            break  # the caller refuses the shape before all elements are collected
        level = list(chain.from_iterable(level))
    return tuple(shape), level, kinds


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


def _natural_dtype(kinds: set[type]) -> np.dtype[Any]:
    if kinds == {bool}:
        return np.dtype(np.bool_)
    return np.dtype(np.int64) if kinds == {int} else np.dtype(np.float32)


def _values(flat: list[Any], kinds: set[type], dtype: np.dtype[Any], place: str) -> Array:
    if dtype.kind == "b":
        return _booleans(flat, kinds, place)
    if dtype.kind in "iu":
        return _integers(flat, kinds, dtype, place)
    floats = _floats(flat, kinds, place)
    return convert(floats.view(np.complex128) if dtype.kind == "c" else floats, dtype, place)


def _booleans(flat: list[Any], kinds: set[type], place: str) -> Array:
    _check_kinds(kinds, {bool, int}, np.dtype(np.bool_), place)
    if not set(flat) <= {0, 1}:
        raise invalid(place, "a number other than 0 and 1 for bool", "true, false, 1 or 0")
    return np.array(flat, np.bool_)


def _integers(flat: list[Any], kinds: set[type], dtype: np.dtype[Any], place: str) -> Array:
    _check_kinds(kinds, {int, float}, dtype, place)
    if float not in kinds:
        try:
            return to_integers(np.array(flat, np.uint64 if dtype == np.uint64 else np.int64), dtype, place)
        except OverflowError as error:
            raise out_of_range(place, dtype) from error
    floats = np.array(flat, np.float64)
    if not (np.isfinite(floats) & (floats == np.trunc(floats))).all():
        raise invalid(place, f"a fraction for {pnnx_name(dtype)}", "whole numbers")
    return to_integers(floats, dtype, place)


def _floats(flat: list[Any], kinds: set[type], place: str) -> Array:
    if str in kinds:
        flat = [NOT_FINITE.get(value, value) if type(value) is str else value for value in flat]
        kinds = set(map(type, flat))
    _check_kinds(kinds, {int, float}, np.dtype(np.float64), place)
    try:
        return np.array(flat, np.float64)
    except OverflowError as error:
        raise out_of_range(place, np.dtype(np.float64)) from error


def _check_kinds(kinds: set[type], taken: set[type], dtype: np.dtype[Any], place: str) -> None:
    for kind in sorted(kinds - taken, key=lambda kind: kind.__name__):
        name = _JSON_NAMES.get(kind, "a number")
        if kind is str and dtype.kind == "f":
            name += " that is not NaN, Infinity or -Infinity"
        raise invalid(place, f"data holds {name}", "booleans" if bool in taken else "numbers")
