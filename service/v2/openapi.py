"""The OpenAPI description of the protocol: what FastAPI cannot derive from the signatures of the routes."""

from typing import Any

from service.schemas import ERROR_CONTENT
from service.v2.binary import HEADER
from service.v2.datatypes import BYTES, DTYPES
from service.v2.response import BINARY_TYPE, JSON_TYPE
from service.v2.schemas import InferResponse

_BINARY = {"type": "string", "format": "binary"}
_HEADER_TEXT = "length of the JSON part in bytes, before compression; the bytes of the tensors follow it"
_ERRORS = {
    400: "The request is malformed, or does not fit the model.",
    403: "Loading and unloading models on request is turned off.",
    404: "There is no such model, or no such version of it.",
    408: "The body took too long to arrive.",
    413: "The body (compressed or decompressed), an image, a tensor or the response exceeds a limit of the server.",
    500: "The server failed; its log gives the reason under the id of the request.",
    501: "The body has a Content-Encoding other than gzip, deflate or identity.",
    503: "The queue is full, the model is broken, or the server is starting or shutting down; see `Retry-After`.",
    504: "The request took too long and was stopped.",
}

DOCUMENT_OPERATION: dict[str, Any] = {
    "requestBody": {"required": False, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}
}
"""An operation with a small JSON body."""


def v2_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of the errors that an operation may return."""
    return {status: {"content": ERROR_CONTENT, "description": _ERRORS[status]} for status in statuses}


_PARAMETERS = {
    "priority": {
        "type": "integer",
        "minimum": 0,
        "description": "1 is served first; 0: the default priority of the model",
    },
    "trace": {
        "type": "boolean",
        "description": "show what every layer did, in the parameters of the response",
    },
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
        "data": {"description": "numbers, nested or flat; for BYTES, images in base64"},
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
            # described in words, because requests generated at random from a schema would nearly all time out
            "description": "beside these, `timeout`: whole microseconds that the response may take, 0 for the "
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
            BINARY_TYPE: {"schema": _BINARY | {"description": "JSON, followed by the bytes of the tensors"}},
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
