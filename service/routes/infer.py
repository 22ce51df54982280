"""`POST /infer`: runs a model."""

from functools import partial
from time import monotonic, perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.body import read_body
from service.codec import Options, negotiate, parse_options
from service.context import context_of
from service.inference import Inference
from service.inference import infer as run_inference
from service.openapi import INFER_OPERATION, INFER_RESPONSES
from service.services import services_of
from service.waiting import result_of

router = APIRouter(tags=["inference"])


@router.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer(request: Request) -> Response:
    """Run a model on one request's inputs, and tell what every layer did."""
    services = services_of(request)
    settings = services.settings
    model = services.repository.find(request.query_params.get("model"))
    context = context_of(request)
    context.model = model.name
    options = _options(request)
    media_type = negotiate(", ".join(request.headers.getlist("accept")))
    services.scheduler.check_room()
    body = await read_body(request, settings.limits, settings.timeout)
    inference = Inference(
        model=model,
        request_id=context.request_id,
        body=body,
        content_type=request.headers.get("content-type"),
        options=options,
        media_type=media_type,
        received_ns=perf_counter_ns(),
    )
    work = partial(run_inference, inference, settings.limits)
    job = services.scheduler.submit(work, deadline=monotonic() + settings.timeout)
    answer = await result_of(job, services.scheduler, request.receive, settings.timeout)
    return Response(answer, media_type=media_type)


def _options(request: Request) -> Options:
    query = dict(request.query_params)
    query.pop("model", None)
    if "capture" in query:
        query["capture"] = ",".join(request.query_params.getlist("capture"))
    return parse_options(query)
