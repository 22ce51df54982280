"""The API's description of the protocol's calls: what FastAPI cannot work out from the routes' signatures."""

from typing import Any

from service.schemas import ErrorBody
from service.v2.binary import HEADER
from service.v2.datatypes import BYTES, DTYPES
from service.v2.response import BINARY_TYPE, JSON_TYPE
from service.v2.schemas import InferResponse

_BINARY = {"type": "string", "format": "binary"}
_HEADER_TEXT = "length of the JSON part in bytes, before compression; the tensors' bytes follow it"
_ERRORS = {
    400: "The request is not sound, or not for this model.",
    403: "Models are neither loaded nor unloaded by request.",
    404: "There is no such model, or no such version of it.",
    408: "The body took too long to arrive.",
    413: "The body, before or after compression, an image or a tensor is larger than the server takes.",
    500: "The server failed; its log has the reason under the request's id.",
    501: "The body has a Content-Encoding other than gzip, deflate and identity.",
    503: "The queue is full, the model is broken, or the server starts or shuts down; see `Retry-After`.",
    504: "The request took too long and was stopped.",
}

DOCUMENT_OPERATION: dict[str, Any] = {
    "requestBody": {"required": False, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}
}
"""A call with a small JSON body."""


def v2_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of errors that a call answers."""
    return {status: {"model": ErrorBody, "description": _ERRORS[status]} for status in statuses}


_PARAMETERS = {
    "priority": {"type": "integer", "minimum": 0, "description": "1 is served first; 0: the model's own"},
    "trace": {"type": "boolean", "description": "tell what every layer did, in the answer's parameters"},
    "binary_data_output": {"type": "boolean", "description": "send outputs as binary data"},
}
_INPUT = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "datatype": {"type": "string", "enum": [*DTYPES, BYTES]},
        "parameters": {
            "type": "object",
            "properties": {"binary_data_size": {"type": "integer", "minimum": 0}},
        },
        "data": {"description": "numbers, nested or flat; of BYTES images in base64"},
    },
}
_OUTPUT = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "parameters": {
            "type": "object",
            "properties": {
                "binary_data": {"type": "boolean"},
                "classification": {"type": "integer", "minimum": 0},
            },
        },
    },
}
_REQUEST = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "parameters": {
            "type": "object",
            # told in words: requests that are made from this description by chance would all run out of time
            "description": "beside these, `timeout`: whole microseconds that the answer may take, 0 for the "
            "server's own; 504 when they are over",
            "properties": _PARAMETERS,
        },
        "inputs": {"type": "array", "items": _INPUT},
        "outputs": {"type": "array", "items": _OUTPUT},
    },
}

INFER_OPERATION: dict[str, Any] = {
    "parameters": [
        {
            "name": HEADER,
            "in": "header",
            "required": False,
            "description": f"{_HEADER_TEXT}; 0: the whole body is the only input; left out: all of it is JSON",
            "schema": {"type": "integer", "minimum": 0},
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            JSON_TYPE: {"schema": _REQUEST},
            BINARY_TYPE: {"schema": _BINARY | {"description": "JSON, and behind it the tensors' bytes"}},
        },
    },
}

INFER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": InferResponse,
        "content": {BINARY_TYPE: {"schema": _BINARY}},
        "headers": {HEADER: {"description": _HEADER_TEXT, "schema": {"type": "integer"}}},
    },
    **v2_errors(400, 404, 408, 413, 500, 501, 503, 504),
}
