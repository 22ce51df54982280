"""The OpenAPI description: what FastAPI cannot derive from the signatures of the routes."""

import re
from functools import lru_cache
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from service.codec import FORMATS, ResponseFormat
from service.codec.format import BINARY_SCHEMA
from service.codec.options import OPTIONS_SCHEMA
from service.description.access import describe_access
from service.description.calls import describe_calls
from service.description.examples import Examples, examples_for
from service.description.predictions import describe_parameters, describe_predictions
from service.http.access import Access
from service.http.guard import OriginPolicy
from service.infer.rendering import PNG_TYPE
from service.repository.repository import ModelRepository
from service.schemas import ERROR_CONTENT, ErrorBody, InferenceResponse
from service.services import services_of

DESCRIPTION = """Serves PNNX models and shows what every layer did.

Every response carries `X-Request-ID`: the id that the client sent, or a new one. Every error looks like this:
`{"error": "one sentence", "code": "machine_readable", "details": {…}}`. So do the responses to requests that cannot be
read: 400 if the HTTP is malformed, 408 if the head takes too long to arrive, 431 if it is too large."""

MODEL_DESCRIPTION = "name of the model; optional if only one is served"
_TIMEOUT_DESCRIPTION = "timeout of the request in seconds; at most the model's own setting"
VERSION_DESCRIPTION = "version of the model; default: the highest, or the choice of `[traffic]`"

_OPTION_DESCRIPTIONS = {
    "trace": "how much of the run to show; stats adds statistics of every output",
    "capture": "names of operands to return, separated by commas",
    "top_k": "number of predictions; default: that of model.toml",
    "render": "return the image with the predictions drawn on it, as PNG",
    "outputs": "whether the response holds the elements of the outputs; the default depends on the task",
}

_END_OF_TITLE = re.compile(r"[:;.,](?:\s|$)")
"""What ends the title of an operation in its description."""

_ERRORS = {
    400: "The body does not match its content type.",
    404: "There is no such model.",
    406: "The response is JSON or npz, and the request accepts neither.",
    408: "The body took too long to arrive.",
    409: "What the server has of the model contradicts itself, or its files have changed since it was loaded.",
    413: "The body, an image, a tensor or the response exceeds a limit of the server.",
    415: "The content type of the body is not supported.",
    422: "The request does not fit the model, or a parameter has an invalid value.",
    500: "The server failed; its log gives the reason under the id of the request.",
    503: "The queue is full, the model is broken, or the server is starting or shutting down; see `Retry-After`.",
    504: "The request took too long and was stopped.",
}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of the errors that a route may return."""
    return {status: {"content": ERROR_CONTENT, "description": _ERRORS[status]} for status in statuses}


BODY_CONTENT: dict[str, Any] = {
    media_type: {"schema": known.schema()} for known in FORMATS.values() for media_type in known.media_types
}
"""The media types of inputs, for the description of a route."""

INFER_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": InferenceResponse},
    **error_responses(400, 404, 406, 408, 413, 415, 422, 500, 503, 504),
}


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


INFER_OPERATION: dict[str, Any] = {
    "parameters": [
        _parameter("model", MODEL_DESCRIPTION, {"type": "string"}),
        _parameter("version", VERSION_DESCRIPTION, {"type": "string"}),
        *(
            _parameter(
                name, _OPTION_DESCRIPTIONS[name], {key: schema[key] for key in schema if key != "description"}
            )
            for name, schema in OPTIONS_SCHEMA.items()
        ),
        _parameter("timeout", _TIMEOUT_DESCRIPTION, {"type": "number", "exclusiveMinimum": 0}),
    ],
    "requestBody": {"required": True, "content": {}},
}
"""What the signature of `POST /infer` does not say; the payload formats fill in the media types."""


def install_openapi(
    app: FastAPI,
    access: Access,
    origins: OriginPolicy,
) -> None:
    """Add to an application's description examples for its models, and the refusals that come before its routes.

    Args:
        app: the application, with all its routes.
        access: which operations need keys.
        origins: refuses requests for other hosts and of other origins.
    """

    @lru_cache(maxsize=1)
    def described(loaded: ModelRepository | None, generation: int) -> dict[str, Any]:
        del (
            generation
        )  # the key under which the description is remembered: examples are those of the models now served
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schema["components"]["schemas"][ErrorBody.__name__] = ErrorBody.model_json_schema()
        _describe_titles(schema)
        describe_access(schema, access, origins)
        describe_predictions(schema)
        describe_parameters(schema)
        bodies = {} if loaded is None else examples_for(loaded.defaults)
        _describe_payloads(schema, bodies)
        describe_calls(schema["paths"], () if loaded is None else loaded.defaults, bodies)
        return schema

    def with_examples() -> dict[str, Any]:
        loaded = services_of(app).loaded
        return described(loaded, 0 if loaded is None else loaded.generation)

    app.openapi = with_examples  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _describe_titles(schema: dict[str, Any]) -> None:
    """Give each operation the beginning of its description as its title."""
    for operations in schema["paths"].values():
        for operation in operations.values():
            operation["summary"] = _END_OF_TITLE.split(operation["description"])[0].replace("`", "")


def _describe_payloads(schema: dict[str, Any], examples: Examples) -> None:
    """Add the media types that `/infer` accepts and returns to a description."""
    operation = schema["paths"]["/infer"]["post"]
    taken: dict[str, Any] = {}
    answered = operation["responses"]["200"]["content"]
    for known in FORMATS.values():
        for media_type in known.media_types:
            taken[media_type] = {"schema": known.schema()}
            if media_type in examples:
                taken[media_type]["examples"] = examples[media_type]
            if isinstance(known, ResponseFormat):
                answered.setdefault(media_type, {"schema": known.response_schema()})
    answered[PNG_TYPE] = {
        "schema": {**BINARY_SCHEMA, "description": "the picture with predictions drawn on it"}
    }
    operation["requestBody"]["content"] = taken
