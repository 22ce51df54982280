"""What a `ModelInferRequest` says besides raw tensors, in the terms that requests over HTTP have."""

from functools import lru_cache
from typing import Any

import numpy as np

from service.codec.conversion import to_integers
from service.errors import ServiceError
from service.grpc.infer_message import InferMessage
from service.grpc.messages import ModelInferRequest, parse
from service.v2.binary import write_strings
from service.v2.datatypes import BOOL, BYTES, DTYPES
from service.v2.document import Document, bad_request
from service.v2.request import InferRequest, InputTensor, parse_request

_BRIEF_BYTES = 1 << 10
"""Maximum bytes of a head that is remembered: clients send the same one repeatedly."""
_MAX_HEADS = 256
"""Heads that are remembered; those that were not sent for longest are forgotten."""
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


Head = tuple[InferRequest, tuple[Any | None, ...]]
"""What a request says in the terms of HTTP, and for each input its `InferTensorContents`; None where it has none."""


def read_head(message: InferMessage) -> Head:
    """Return what a request says besides raw tensors.

    Raises:
        ServiceError: 400, 413 `too_many_values`.
    """
    read = _parse_brief if len(message.head) <= _BRIEF_BYTES else _parse
    request, contents = read(message.head)
    inputs, raw = request.inputs, message.raw
    if raw:
        for tensor, given_contents in zip(inputs, contents, strict=True):
            if given_contents is not None:
                given = "has contents, but the request has raw_input_contents as well"
                raise bad_request(f"{tensor.place} {given}; send one of them")
        if len(raw) != len(inputs):
            raise bad_request(f"the request has {len(inputs)} inputs and {len(raw)} raw_input_contents")
    return request, contents


def raw_contents(tensor: InputTensor, contents: Any | None) -> memoryview:
    """Return the elements of an input as raw contents: little-endian, a string after its length in four bytes.

    Args:
        tensor: the input.
        contents: its `InferTensorContents`; None: it has none.

    Raises:
        ServiceError: 400 `invalid_request`, 422 `out_of_range`.
    """
    if contents is None:
        return memoryview(b"")
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
    values: Document = {}
    for name, parameter in entry.parameters.items():
        chosen = parameter.WhichOneof("parameter_choice")
        values[name] = None if chosen is None else getattr(parameter, chosen)
    return values


def _parse(head: bytes) -> Head:
    message = parse(ModelInferRequest, head, len(head))  # its size was checked before
    contents = [entry.contents if entry.HasField("contents") else None for entry in message.inputs]
    return parse_request(_document(message)), tuple(contents)


_parse_brief = lru_cache(_MAX_HEADS)(_parse)


def _document(message: Any) -> Document:
    """Return a message as the JSON part of a request with binary data would be."""
    return {
        "parameters": {**parameters_of(message), "binary_data_output": True},
        "inputs": [_input(entry) for entry in message.inputs],
        "outputs": [{"name": entry.name, "parameters": _own_parameters(entry)} for entry in message.outputs],
    }


def _input(entry: Any) -> Document:
    return {
        "name": entry.name,
        "datatype": entry.datatype,
        "shape": list(entry.shape),
        "parameters": {**_own_parameters(entry), "binary_data_size": 0},
    }


def _own_parameters(entry: Any) -> Document:
    """Return the parameters of an input or output, without those that mean something over HTTP alone."""
    kept = parameters_of(entry)
    for name in ("binary_data", "binary_data_size"):
        kept.pop(name, None)
    return kept


def _wrong_field(tensor: InputTensor, wanted: str, given: str) -> ServiceError:
    expected = f"{wanted} or raw_input_contents" if wanted else "raw_input_contents"
    message = f"{tensor.place} is {tensor.datatype} and has {given}; expected {expected}"
    return ServiceError(400, "invalid_request", message, {"expected": expected})
