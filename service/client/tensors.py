"""Arrays as binary tensors of the Open Inference Protocol, version 2, with its extension for binary data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from service.client.errors import ResponseError

HEADER = "inference-header-content-length"

_Array = np.ndarray[Any, np.dtype[Any]]

_NAMES = {
    np.dtype(code): name
    for code, name in (
        ("?", "BOOL"),
        ("u1", "UINT8"),
        ("<u2", "UINT16"),
        ("<u4", "UINT32"),
        ("<u8", "UINT64"),
        ("i1", "INT8"),
        ("<i2", "INT16"),
        ("<i4", "INT32"),
        ("<i8", "INT64"),
        ("<f2", "FP16"),
        ("<f4", "FP32"),
        ("<f8", "FP64"),
    )
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def has_datatype(array: _Array) -> bool:
    """Return whether the protocol has a datatype for an array: it has none for complex numbers."""
    return array.dtype.newbyteorder("=") in _NAMES


def encode(arrays: Mapping[str, _Array], parameters: Mapping[str, Any]) -> tuple[bytes, int]:
    """Return a request's body and the length of its JSON part.

    Args:
        arrays: an array for each input, by name, of dtypes that have datatypes.
        parameters: parameters of the request.
    """
    inputs: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        data = np.ascontiguousarray(array, dtype).tobytes()
        inputs.append(
            {
                "name": name,
                "shape": array.shape,
                "datatype": _NAMES[array.dtype.newbyteorder("=")],
                "parameters": {"binary_data_size": len(data)},
            }
        )
        pieces.append(data)
    head = orjson.dumps({"inputs": inputs, "parameters": {"binary_data_output": True, **parameters}})
    return b"".join([head, *pieces]), len(head)


def decode(body: bytes, header_length: str | None) -> dict[str, _Array]:
    """Return the outputs of a response by name; arrays are read-only views of the body.

    Raises:
        ResponseError: it is no such response.
    """
    try:
        length = len(body) if header_length is None else int(header_length)
        head = orjson.loads(body[:length])
        arrays: dict[str, _Array] = {}
        position = length
        for output in head["outputs"]:
            size = output["parameters"]["binary_data_size"]
            arrays[output["name"]] = _array(output, memoryview(body)[position : position + size])
            position += size
    except (ValueError, KeyError, TypeError) as error:
        raise ResponseError(f"the response is not one of the Open Inference Protocol: {error!r}") from error
    return arrays


def _array(output: Mapping[str, Any], data: memoryview) -> _Array:
    shape = output["shape"]
    if output["datatype"] == "BF16":  # the upper half of a float32
        wide = np.frombuffer(data, "<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    return np.frombuffer(data, _DTYPES[output["datatype"]]).reshape(shape)
