"""What a `ModelInferRequest` says, in the terms that requests over HTTP have."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from service.codec.conversion import to_integers
from service.codec.json_numbers import MAX_RANK
from service.errors import ServiceError
from service.v2.binary import write_strings
from service.v2.datatypes import BOOL, BYTES, DTYPES
from service.v2.document import Document, bad_request
from service.v2.request import InferRequest, InputTensor, check_counts, parse_request

_FIELD_OF = {
    BOOL: "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
}
"""Datatype -> the field for its elements; FP16 and BF16 have none."""
_WIDE = {
    "int_contents": np.int32,
    "uint_contents": np.uint32,
}
"""Field whose numbers may be wider than the datatype -> their dtype."""
_PIECE = 1 << 15
"""Numbers that are converted at a time, to release the GIL in between."""


def read_request(message: Any, raw: Sequence[memoryview]) -> InferRequest:
    """Return what a `ModelInferRequest` says besides its tensors, read as the same request over HTTP.

    Args:
        message: the message, without raw tensors.
        raw: the raw tensors.

    Raises:
        ServiceError: 400, 413 `too_many_values`.
    """
    check_counts(message.inputs, message.outputs)
    request = parse_request(_document(message))
    if raw:
        for tensor, entry in zip(request.inputs, message.inputs, strict=True):
            if entry.HasField("contents"):
                given = "has contents, but the request has raw_input_contents as well"
                raise bad_request(f"{tensor.place} {given}; send one of them")
        if len(raw) != len(request.inputs):
            raise bad_request(
                f"the request has {len(request.inputs)} inputs and {len(raw)} raw_input_contents"
            )
    return request


def raw_contents(tensor: InputTensor, contents: Any) -> memoryview:
    """Return the elements of an input as raw contents: little-endian, a string after its length in four bytes.

    Args:
        tensor: the input.
        contents: its `InferTensorContents`.

    Raises:
        ServiceError: 400 `invalid_request`, 422 `out_of_range`.
    """
    wanted = _FIELD_OF.get(tensor.datatype, "")
    for field, _ in contents.ListFields():
        if field.name != wanted:
            raise _wrong_field(tensor, wanted, field.name)
    if not wanted:
        return memoryview(b"")
    values = getattr(contents, wanted)
    if tensor.datatype == BYTES:
        return memoryview(write_strings(values))
    dtype = DTYPES[tensor.datatype]
    array = np.empty(len(values), _WIDE.get(wanted, dtype))
    for start in range(0, len(values), _PIECE):
        array[start : start + _PIECE] = values[start : start + _PIECE]
    if array.dtype != dtype:
        array = to_integers(array, dtype, tensor.place)
    return array.view(np.uint8).data


def parameters_of(entry: Any) -> Document:
    """Return the `parameters` of a message by name, None for those without a value."""
    return {name: parameter_of(parameter) for name, parameter in entry.parameters.items()}


def parameter_of(entry: Any) -> Any:
    """Return the value that was chosen for a parameter, None where none was."""
    chosen = entry.WhichOneof("parameter_choice")
    return None if chosen is None else getattr(entry, chosen)


def _document(message: Any) -> Document:
    """Return a message as the JSON part of a request with binary data would be."""
    return {
        "parameters": {**parameters_of(message), "binary_data_output": True},
        "inputs": [_input(entry) for entry in message.inputs],
        "outputs": [
            {"name": entry.name, "parameters": {**parameters_of(entry), "binary_data": True}}
            for entry in message.outputs
        ],
    }


def _input(entry: Any) -> Document:
    return {
        "name": entry.name,
        "datatype": entry.datatype,
        "shape": entry.shape[: MAX_RANK + 1],  # more are refused, and take long to convert
        "parameters": {**parameters_of(entry), "binary_data_size": 0},
    }


def _wrong_field(tensor: InputTensor, wanted: str, given: str) -> ServiceError:
    expected = f"{wanted} or raw_input_contents" if wanted else "raw_input_contents"
    message = f"{tensor.place} is {tensor.datatype} and has {given}; expected {expected}"
    return ServiceError(400, "invalid_request", message, {"expected": expected})
