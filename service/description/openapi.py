"""The API's description: what FastAPI cannot work out from the routes' signatures."""

from functools import lru_cache
from typing import Any

from fastapi import FastAPI

from service.codec import JSON_TYPE, NPZ_TYPE
from service.description.access import describe_access
from service.description.examples import Examples, examples_for
from service.http.access import Access
from service.repository.repository import ModelRepository
from service.schemas import ErrorBody, InferAnswer
from service.services import services_of

DESCRIPTION = """Serves PNNX models and shows what every layer did.

Every answer carries `X-Request-ID`, the client's own or one made for it. Every error looks like this:
`{"error": "one sentence", "code": "machine_readable", "details": {…}}`. So do answers to what never becomes a
request: 400 where it is not sound HTTP, 408 and 431 where its head takes too long or is too large."""

MODEL_DESCRIPTION = "name of the model; may be left out where one model is served"
VERSION_DESCRIPTION = "version of the model; by default the highest that is served"

_BINARY = {"type": "string", "format": "binary"}
_IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/bmp")

_ERRORS = {
    400: "The body is not what it claims to be.",
    404: "There is no such model.",
    406: "The answer comes as JSON or npz, and the request takes neither.",
    408: "The body took too long to arrive.",
    413: "The body, an image or a tensor is larger than the server takes.",
    415: "The body is of no type that is taken.",
    422: "The request is sound, but not for this model, or a parameter has no such value.",
    500: "The server failed; its log has the reason under the request's id.",
    503: "The queue is full, the model is broken, or the server starts or shuts down; see `Retry-After`.",
    504: "The request took too long and was stopped.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of errors that a route answers."""
    return {status: {"model": ErrorBody, "description": _ERRORS[status]} for status in statuses}


INFER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": InferAnswer, "content": {NPZ_TYPE: {"schema": _BINARY}}},
    **error_responses(400, 404, 406, 408, 413, 415, 422, 500, 503, 504),
}


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


_TRACE = {"type": "string", "enum": ["off", "on", "stats"], "default": "on"}
_TOP_K = {"type": "integer", "minimum": 1}
_OPTIONS = {
    "trace": _TRACE,
    "capture": {"type": "string", "description": "operand names, commas between"},
    "top_k": _TOP_K,
}

_JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "exactly one of image, images and inputs",
    "additionalProperties": False,
    "properties": {
        "image": {"type": "string", "description": "an encoded image as base64 or as a data: URL"},
        "images": {"type": "array", "items": {"type": "string"}, "description": "a batch of images"},
        "inputs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["data"],
                "additionalProperties": False,
                "properties": {
                    "name": {"type": "string", "description": "operator or operand name of the input"},
                    "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                    "dtype": {"type": "string", "description": "f32, float32, FP32, …"},
                    "data": {"description": "numbers, nested or flat"},
                },
            },
        },
        "parameters": {"type": "object", "additionalProperties": False, "properties": _OPTIONS},
    },
}

_FORM_SCHEMA = {
    "type": "object",
    "properties": {"file": _BINARY | {"description": "an image"}, **_OPTIONS},
    "required": ["file"],
}

INFER_OPERATION: dict[str, Any] = {
    "parameters": [
        _parameter("model", MODEL_DESCRIPTION, {"type": "string"}),
        _parameter("version", VERSION_DESCRIPTION, {"type": "string"}),
        _parameter("trace", "how much of the run to show; stats adds statistics of every output", _TRACE),
        _parameter("capture", "names of operands to return, commas between", {"type": "string"}),
        _parameter("top_k", "how many predictions; by default as the model's configuration says", _TOP_K),
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": _FORM_SCHEMA},
            **{image_type: {"schema": _BINARY} for image_type in _IMAGE_TYPES},
            JSON_TYPE: {"schema": _JSON_SCHEMA},
            "application/x-npy": {"schema": _BINARY | {"description": "the model's only input"}},
            NPZ_TYPE: {"schema": _BINARY | {"description": "one array for each input, by name"}},
            "text/csv": {
                "schema": {"type": "string", "description": "a two-dimensional input, with or without header"}
            },
        },
    },
}


def install_openapi(app: FastAPI, access: Access) -> None:
    """Put examples for the models that are served, and who may ask for what, into the application's description."""
    describe = app.openapi

    @lru_cache(maxsize=1)
    def described(loaded: ModelRepository | None, generation: int) -> dict[str, Any]:
        del generation  # the examples are those of the models that are served at the moment
        schema = describe()
        describe_access(schema, access)
        if loaded is not None:
            _add_examples(schema, examples_for(loaded.defaults))
        return schema

    def with_examples() -> dict[str, Any]:
        loaded = services_of(app).loaded
        return described(loaded, 0 if loaded is None else loaded.generation)

    app.openapi = with_examples  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _add_examples(schema: dict[str, Any], examples: Examples) -> None:
    content = schema["paths"]["/infer"]["post"]["requestBody"]["content"]
    for media_type, described in content.items():
        described.pop("examples", None)
        if media_type in examples:
            described["examples"] = examples[media_type]
