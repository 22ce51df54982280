"""`POST /models/{name}:explain`: which parts of a picture, or words of a text, a prediction depends on."""

from base64 import b64decode
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.requests import ClientDisconnect

from engine import InputError, LayerError, RunStoppedError, StopSignal
from service.codec import JSON_TYPE, Decoded, check_names, decode, negotiate
from service.config.limits import Limits
from service.context import context_of
from service.description.openapi import BODY_CONTENT, VERSION_DESCRIPTION, error_responses
from service.errors import ServiceError, engine_error, timed_out
from service.http.body import read_body
from service.infer.predict import PredictExchange
from service.infer.rendering import PNG_TYPE
from service.inspection.explanation import explain
from service.inspection.explanation_schemas import ExplanationView, Question
from service.repository.loaded_model import LoadedModel
from service.scheduling.scheduler import watch_client
from service.services import find_model, services_of

_ERRORS = error_responses(400, 404, 406, 408, 413, 415, 422, 500, 503, 504)
_LEFT = "the client left"
_Read = Callable[[bytes, LoadedModel, Limits], Decoded]

router = APIRouter(tags=["models"])


class _Query(Question):
    """The parameters of a request."""

    version: str | None = Field(default=None, description=VERSION_DESCRIPTION)
    timeout: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="timeout in seconds; at most the server's"
    )


@router.post(
    "/models/{name}:explain",
    response_class=Response,
    responses={200: {"model": ExplanationView, "content": {PNG_TYPE: {}}}, **_ERRORS},
    openapi_extra={"requestBody": {"required": True, "content": BODY_CONTENT}},
)
async def explain_prediction(request: Request, name: str, query: Annotated[_Query, Query()]) -> Response:
    """Show which parts of a picture or which words of a text a prediction depends on.

    The body is one input. With `Accept: image/png` the response is the picture with the heatmap laid over it.
    """
    check_names(request.query_params, _Query.model_fields)

    def read(body: bytes, model: LoadedModel, limits: Limits) -> Decoded:
        return decode(body, request.headers.get("content-type"), model.graph.inputs, model.config, limits)

    media_type = negotiate(request.headers.get("accept"), (PNG_TYPE,))
    content = await _explain(request, name, query, read, is_drawn=media_type == PNG_TYPE)
    return Response(content, media_type=PNG_TYPE if media_type == PNG_TYPE else JSON_TYPE)


@router.post(
    "/v1/models/{name}:explain",
    response_class=Response,
    responses={200: {"content": {JSON_TYPE: {"schema": {"type": "object"}}}}, **_ERRORS},
    openapi_extra={"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}},
)
async def explain_instance(request: Request, name: str) -> Response:
    """Explain by KServe's API: `{"instances": [row]}` gives `{"explanations": [explanation]}`."""
    context = context_of(request)

    def read(body: bytes, model: LoadedModel, limits: Limits) -> Decoded:
        return PredictExchange(model, context.request_id, context.client, limits, body).read()

    content = await _explain(request, name, _Query(), read)
    return Response(b'{"explanations":[' + content + b"]}", media_type=JSON_TYPE)


async def _explain(
    request: Request, name: str, query: _Query, read: _Read, *, is_drawn: bool = False
) -> bytes:
    """Return the body of the response; `read` decodes that of the request."""
    services, context = services_of(request), context_of(request)
    limits, longest = services.limits, services.settings.timeout
    timeout = min(query.timeout or longest, longest)
    model = find_model(request, name, query.version)
    body = await read_body(request, limits, longest, services.lifecycle)
    stop = StopSignal(monotonic() + timeout)

    def respond() -> bytes:
        decoded = read(body, model, limits)
        try:
            found = explain(model, decoded, query, limits, stop)
        except (InputError, LayerError) as error:
            raise engine_error(error, model.graph.inputs, decoded.inputs) from error
        if not is_drawn:
            return orjson.dumps(found.model_dump())
        if found.overlay is None:
            message = "the request has no picture to lay a heatmap over; ask for JSON"
            raise ServiceError(422, "not_drawable", message, {"expected": "a picture"})
        return b64decode(found.overlay)

    try:
        with watch_client(request.receive, partial(stop.stop, _LEFT)):
            return await services.comparisons.run(context.client, respond, timeout)
    except RunStoppedError as error:
        raise (ClientDisconnect() if stop.reason() == _LEFT else timed_out(timeout)) from error
    finally:
        stop.stop(_LEFT)
