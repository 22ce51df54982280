"""`POST /models/{name}:explain`: which parts of a picture, or words of a text, a prediction depends on."""

from base64 import b64encode
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Annotated

import numpy as np
import orjson
from fastapi import APIRouter, Query, Request, Response
from starlette.requests import ClientDisconnect

from engine import InputError, LayerError, RunStoppedError, StopSignal
from service.codec import FORMATS, JSON_TYPE, Decoded, check_names, decode, describe_predictions, negotiate
from service.config.limits import Limits
from service.context import context_of
from service.description.openapi import VERSION_DESCRIPTION, error_responses
from service.errors import ServiceError, engine_error, timed_out
from service.http.body import read_body
from service.infer.predict import PredictExchange
from service.infer.rendering import PNG_TYPE, render_heatmap
from service.inspection.explanation import Method, Question, explain
from service.inspection.explanation_schemas import ExplanationView
from service.repository.loaded_model import LoadedModel
from service.scheduling.scheduler import watch_client
from service.services import services_of

_BODY = {
    media_type: {"schema": known.schema()} for known in FORMATS.values() for media_type in known.media_types
}
_ERRORS = error_responses(400, 404, 406, 408, 413, 415, 422, 500, 503, 504)
_LEFT = "the client left"
_PARAMETERS = ("version", "target", "place", "method", "grid", "maps", "layer")
_DECIMALS = 6
"""Those of a heatmap's elements."""

router = APIRouter(tags=["models"])

Target = Annotated[str | None, Query(description="label or number of a class; default: the most probable")]
Place = Annotated[
    int,
    Query(
        ge=0, le=1000, description="place of the prediction among those of the target; 0: the most probable"
    ),
]
MethodQuery = Annotated[
    Method | None, Query(description="default: occlusion for a picture, words for a text")
]
Grid = Annotated[int, Query(ge=2, le=32, description="occlusion: parts of the picture along each side")]
Maps = Annotated[
    int, Query(ge=1, le=512, description="Score-CAM: channels of the layer, those that vary most")
]
LayerQuery = Annotated[
    str | None,
    Query(
        description="Score-CAM: operator or operand; default: the last one with channels of several pixels"
    ),
]


@router.post(
    "/models/{name}:explain",
    response_class=Response,
    responses={200: {"model": ExplanationView, "content": {PNG_TYPE: {}}}, **_ERRORS},
    openapi_extra={"requestBody": {"required": True, "content": _BODY}},
)
async def explain_prediction(
    request: Request,
    name: str,
    version: Annotated[str | None, Query(description=VERSION_DESCRIPTION)] = None,
    target: Target = None,
    place: Place = 0,
    method: MethodQuery = None,
    grid: Grid = 8,
    maps: Maps = 64,
    layer: LayerQuery = None,
) -> Response:
    """Show which parts of a picture or which words of a text a prediction depends on.

    The body is one input. With `Accept: image/png` the response is the picture with the heatmap laid over it.
    """
    check_names(request.query_params, _PARAMETERS)
    question = Question(method, target, place, grid, maps, layer)
    content_type = request.headers.get("content-type")

    def read(body: bytes, model: LoadedModel, limits: Limits) -> Decoded:
        return decode(body, content_type, model.graph.inputs, model.config, limits)

    media_type = negotiate(request.headers.get("accept"), (PNG_TYPE,))
    content = await _explain(request, name, version, question, read, is_drawn=media_type == PNG_TYPE)
    return Response(content, media_type=PNG_TYPE if media_type == PNG_TYPE else JSON_TYPE)


@router.post(
    "/v1/models/{name}:explain",
    response_class=Response,
    responses={200: {"content": {JSON_TYPE: {"schema": {"type": "object"}}}}, **_ERRORS},
    openapi_extra={"requestBody": {"required": True, "content": {JSON_TYPE: {"schema": {"type": "object"}}}}},
)
async def explain_instance(request: Request, name: str) -> Response:
    """Explain by KServe's API: `{"instances": [row]}` gives `{"explanations": [explanation]}`."""

    def read(body: bytes, model: LoadedModel, limits: Limits) -> Decoded:
        exchange = PredictExchange.from_request(request, model, limits)
        exchange.body = body
        return exchange.read()

    content = await _explain(request, name, None, Question(), read)
    return Response(b'{"explanations":[' + content + b"]}", media_type=JSON_TYPE)


async def _explain(
    request: Request,
    name: str,
    version: str | None,
    question: Question,
    read: Callable[[bytes, LoadedModel, Limits], Decoded],
    *,
    is_drawn: bool = False,
) -> bytes:
    """Return the body of the response."""
    services, context = services_of(request), context_of(request)
    settings, limits = services.settings, services.limits
    model = services.repository.find(name, version)
    context.model = model.name
    body = await read_body(request, limits, settings.timeout, services.lifecycle)
    stop = StopSignal(monotonic() + settings.timeout)
    respond = partial(_respond, model, partial(read, body, model, limits), question, limits, stop, is_drawn)
    try:
        with watch_client(request.receive, partial(stop.stop, _LEFT)):
            return await services.comparisons.run(context.client, respond, settings.timeout)
    except RunStoppedError as error:
        raise (ClientDisconnect() if stop.reason() == _LEFT else timed_out(settings.timeout)) from error
    finally:
        stop.stop(_LEFT)


def _respond(
    model: LoadedModel,
    read: Callable[[], Decoded],
    question: Question,
    limits: Limits,
    stop: StopSignal,
    is_drawn: bool,
) -> bytes:
    """Decode the body, run the model and return the response, as JSON or as a picture; on a thread."""
    decoded, overlay = read(), None
    try:
        found = explain(model, decoded, question, limits, stop)
    except (InputError, LayerError) as error:
        raise engine_error(error, model.graph.inputs, decoded.inputs) from error
    if decoded.pictures and found.heatmap is not None and found.region is not None and model.config.image:
        picture = decoded.pictures[0]
        overlay = render_heatmap(picture, found.heatmap, found.region, model.config.image, limits)
    if is_drawn:
        if overlay is None:
            message = "the request has no picture to lay a heatmap over; ask for JSON"
            raise ServiceError(422, "not_drawable", message, {"expected": "a picture"})
        return overlay
    heatmap = (
        None if found.heatmap is None else np.round(found.heatmap.astype(np.float64), _DECIMALS).tolist()
    )
    return orjson.dumps(
        {
            "model": model.name,
            "version": model.version,
            "method": found.method,
            "target": describe_predictions([[found.target]])[0][0],
            "runs": found.runs,
            "layer": found.layer,
            "region": found.region,
            "heatmap": heatmap,
            "overlay": None if overlay is None else b64encode(overlay).decode(),
            "words": found.words or None,
        }
    )
