"""Bodies as clients of the protocol make them."""

from typing import Any

import numpy as np
import orjson

from engine import Array

DATATYPES = {
    "bool": "BOOL",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    **{f"{sign}int{bits}": f"{sign.upper()}INT{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def json_input(name: str, array: Array) -> dict[str, Any]:
    """Return an input with its elements in JSON."""
    return {
        "name": name,
        "shape": list(array.shape),
        "datatype": DATATYPES[array.dtype.name],
        "data": array.ravel().tolist(),
    }


def binary_input(name: str, array: Array) -> dict[str, Any]:
    """Return an input whose elements follow the JSON part."""
    described = json_input(name, array)
    del described["data"]
    return described | {"parameters": {"binary_data_size": array.nbytes}}


def binary_body(document: dict[str, Any], *arrays: Array) -> tuple[bytes, int]:
    """Return a body of a JSON part and binary data, and the length of the first."""
    text = orjson.dumps(document)
    return text + b"".join(np.ascontiguousarray(array).tobytes() for array in arrays), len(text)


def strings(*elements: bytes) -> bytes:
    """Return a BYTES tensor's binary data."""
    return b"".join(len(element).to_bytes(4, "little") + element for element in elements)
