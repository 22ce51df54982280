"""`POST /infer`: runs a model."""

from time import perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.body import read_body
from service.call import Call, Surface
from service.codec import Options, negotiate, parse_options
from service.context import context_of
from service.inference import Inference
from service.openapi import INFER_OPERATION, INFER_RESPONSES
from service.services import services_of

router = APIRouter(tags=["inference"])


@router.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer(request: Request) -> Response:
    """Run a model on one request's inputs, and tell what every layer did."""
    services = services_of(request)
    settings = services.settings
    model = services.repository.find(request.query_params.get("model"), request.query_params.get("version"))
    context = context_of(request)
    context.model = model.name
    with services.dispatcher.admission(model, Surface.INFER, context.request_id):
        options = _options(request)
        media_type = negotiate(", ".join(request.headers.getlist("accept")))
        body = await read_body(request, settings.limits, settings.timeout)
    inference = Inference(
        model=model,
        request_id=context.request_id,
        body=body,
        content_type=request.headers.get("content-type"),
        options=options,
        media_type=media_type,
        limits=settings.limits,
        received_ns=perf_counter_ns(),
    )
    del body  # the inference drops it when it is decoded
    call = Call(
        model=model,
        surface=Surface.INFER,
        request_id=context.request_id,
        decode=inference.decode,
        encode=inference.encode,
        received_ns=inference.received_ns,
    )
    answer = await services.dispatcher.answer(call, request.receive)
    return Response(answer, media_type=media_type)


def _options(request: Request) -> Options:
    query = dict(request.query_params)
    query.pop("model", None)
    query.pop("version", None)
    if "capture" in query:
        query["capture"] = ",".join(request.query_params.getlist("capture"))
    return parse_options(query)
