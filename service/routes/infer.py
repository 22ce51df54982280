"""`POST /infer`: runs a model."""

from time import perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.context import context_of
from service.description.openapi import INFER_OPERATION, INFER_RESPONSES
from service.http.body import read_body
from service.infer.inference import open_inference
from service.scheduling.call import Surface
from service.scheduling.intake import Header
from service.services import services_of

router = APIRouter(tags=["inference"])


@router.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer(request: Request) -> Response:
    """Run a model on one request's inputs, and tell what every layer did."""
    services = services_of(request)
    settings = services.settings
    query = request.query_params
    model = services.repository.find(query.get("model"), query.get("version"))
    context = context_of(request)
    context.model = model.name
    with services.dispatcher.admission(model, Surface.INFER, context.request_id):
        intake = open_inference(model, context.request_id, query, _joined(request), settings.limits)
        body = await read_body(request, settings.limits, settings.timeout)
        call = intake.call(body, perf_counter_ns())
        del body  # the call drops it when it is decoded
    answer = await services.dispatcher.answer(call, request.receive)
    return Response(answer.body, headers=answer.headers, media_type=answer.media_type)


def _joined(request: Request) -> Header:
    """Return a look at the request's headers in which those that came several times are one."""
    return lambda name: ", ".join(request.headers.getlist(name)) or None
