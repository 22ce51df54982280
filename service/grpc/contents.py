"""The elements of an input that are in a field for its datatype, as the bytes that raw contents would have."""

from math import prod
from typing import Any

import numpy as np

from engine import Array
from service.codec.conversion import to_integers
from service.config.limits import Limits, too_large
from service.errors import ServiceError
from service.grpc.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    count_varints,
    fields,
    malformed,
    read_varints,
)
from service.v2.datatypes import BOOL, DTYPES, WIRE_SIZES
from service.v2.datatypes import BYTES as STRINGS
from service.v2.request import InputTensor

_NAMES = {
    1: "bool_contents",
    2: "int_contents",
    3: "int64_contents",
    4: "uint_contents",
    5: "uint64_contents",
    6: "fp32_contents",
    7: "fp64_contents",
    8: "bytes_contents",
}
"""Number of a field of `InferTensorContents` -> its name."""
_FIELD_OF = {
    BOOL: 1,
    **dict.fromkeys(("INT8", "INT16", "INT32"), 2),
    "INT64": 3,
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), 4),
    "UINT64": 5,
    "FP32": 6,
    "FP64": 7,
    STRINGS: 8,
}
"""Datatype -> the field for its elements; FP16 and BF16 have none."""
_KINDS = dict.fromkeys(range(1, 6), VARINT) | {6: FIXED32, 7: FIXED64, 8: BYTES}
"""Number of a field -> wire type of an element that is not packed with others."""
_SIZES = {6: 4, 7: 8}
"""Number of a field -> bytes of each of its numbers; the others have as many as they need."""
_MOST_FIELDS = 1 << 16
"""Most strings, parts of numbers, and fields that are not known: whoever packs numbers, as all do, sends one part."""


def raw_contents(tensor: InputTensor, contents: memoryview, limits: Limits) -> memoryview:
    """Return the elements of an input as raw contents: little-endian, a string after its length in four bytes.

    Args:
        tensor: the input.
        contents: the bytes of its `InferTensorContents`.
        limits: upper bounds on the size of a request.

    Raises:
        ServiceError: 400 `invalid_message`, `invalid_request` or `wrong_size`, 413 `tensor_too_large` or
            `too_many_values`, 422 `out_of_range`.
    """
    parts = _parts(tensor, contents)
    if tensor.datatype == STRINGS:
        return memoryview(b"".join(piece for part in parts for piece in (_length(part), part)))
    whole = parts[0] if len(parts) == 1 else memoryview(b"".join(parts))
    if DTYPES[tensor.datatype].kind == "f":
        return whole
    return _integers(tensor, whole, limits)


def _parts(tensor: InputTensor, contents: memoryview) -> list[memoryview]:
    """Return the strings of an input, or its numbers in one part or several, each of which holds whole numbers."""
    wanted = _FIELD_OF.get(tensor.datatype)
    parts: list[memoryview] = []
    for count, field in enumerate(fields(contents), 1):
        if count > _MOST_FIELDS:
            raise too_large("too_many_values", f"contents of {tensor.place}", count, _MOST_FIELDS, "fields")
        if field.number not in _NAMES:
            continue
        if field.number != wanted:
            raise _wrong_field(tensor, _NAMES[field.number])
        if not _is_whole(field):
            raise malformed(f"{tensor.place}: {_NAMES[field.number]} does not hold what its name says")
        parts.append(field.value)
    return parts


def _is_whole(field: Field) -> bool:
    """Return whether a field of the contents holds one element, or several that are packed, and nothing else."""
    if field.kind != BYTES or field.number == _FIELD_OF[STRINGS]:
        return field.kind == _KINDS[field.number]
    size = _SIZES.get(field.number)
    if size is None:
        return not field.value or field.value[-1] < 0x80
    return len(field.value) % size == 0


def _length(part: memoryview) -> bytes:
    return len(part).to_bytes(4, "little")


def _integers(tensor: InputTensor, packed: memoryview, limits: Limits) -> memoryview:
    """Return packed varints as elements of the input's datatype."""
    limits.check_shape(tensor.shape, tensor.place)
    count, expected = count_varints(packed), prod(tensor.shape)
    if count != expected:
        message = f"{tensor.place} has {count} elements; its shape {list(tensor.shape)} has {expected}"
        size = WIRE_SIZES[tensor.datatype]
        details = {"bytes": count * size, "expected": expected * size}
        raise ServiceError(400, "wrong_size", message, details)
    dtype: np.dtype[Any] = DTYPES[tensor.datatype]
    values: Array = read_varints(packed)
    if dtype.kind == "b":
        values = values != 0
    elif dtype.kind == "i":
        values = values.view(np.int64)  # negative numbers are sent as their two's complement in 64 bits
    if dtype.kind != "b" and dtype.itemsize < 8:
        values = to_integers(values, dtype, tensor.place)
    return values.view(np.uint8).data


def _wrong_field(tensor: InputTensor, given: str) -> ServiceError:
    wanted = _FIELD_OF.get(tensor.datatype)
    expected = "raw_input_contents" if wanted is None else f"{_NAMES[wanted]} or raw_input_contents"
    message = f"{tensor.place} is {tensor.datatype} and has {given}; expected {expected}"
    return ServiceError(400, "invalid_request", message, {"expected": expected})
