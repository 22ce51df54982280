"""The API's description: what FastAPI cannot work out from the routes' signatures."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi

from service.codec import FORMATS, AnswerFormat
from service.codec.options import OPTIONS_SCHEMA
from service.description.access import describe_access
from service.description.examples import Examples, examples_for
from service.description.predictions import describe_predictions
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

_OPTION_DESCRIPTIONS = {
    "trace": "how much of the run to show; stats adds statistics of every output",
    "capture": "names of operands to return, commas between",
    "top_k": "how many predictions; by default as the model's configuration says",
}

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
    200: {"model": InferAnswer},
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
    ],
    "requestBody": {"required": True, "content": {}},
}
"""What of `POST /infer` the route's signature does not say; its content is that of the payload formats."""


def install_openapi(app: FastAPI, access: Access, described_only: Sequence[APIRouter]) -> None:
    """Put examples for the models that are served, and which calls need keys, into the application's description.

    Args:
        app: the application, with all its routes.
        access: which calls need keys.
        described_only: routers of what plain ASGI routes answer, which FastAPI knows nothing of.
    """
    routes = [*(route for router in described_only for route in router.routes), *app.routes]

    @lru_cache(maxsize=1)
    def described(loaded: ModelRepository | None, generation: int) -> dict[str, Any]:
        del generation  # the examples are those of the models that are served at the moment
        schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=routes)
        describe_access(schema, access)
        describe_predictions(schema)
        _describe_payloads(schema, {} if loaded is None else examples_for(loaded.defaults))
        return schema

    def with_examples() -> dict[str, Any]:
        loaded = services_of(app).loaded
        return described(loaded, 0 if loaded is None else loaded.generation)

    app.openapi = with_examples  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _describe_payloads(schema: dict[str, Any], examples: Examples) -> None:
    """Write into a description which bodies `/infer` takes and answers."""
    operation = schema["paths"]["/infer"]["post"]
    taken: dict[str, Any] = {}
    answered = operation["responses"]["200"]["content"]
    for known in FORMATS.values():
        for media_type in known.media_types:
            taken[media_type] = {"schema": known.schema()}
            if media_type in examples:
                taken[media_type]["examples"] = examples[media_type]
            if isinstance(known, AnswerFormat):
                answered.setdefault(media_type, {"schema": known.answer_schema()})
    operation["requestBody"]["content"] = taken
