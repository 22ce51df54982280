"""`POST /v2/models/M/infer`."""

from asyncio import get_running_loop
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.context import context_of
from service.http.body import read_body
from service.repository.loaded_model import LoadedModel
from service.routes.v2.model import find_model
from service.scheduling.call import Call, Surface
from service.scheduling.intake import Answer
from service.services import services_of
from service.v2.intake import V2Intake
from service.v2.openapi import INFER_OPERATION, INFER_RESPONSES

router = APIRouter(tags=["v2"])

_unpacking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="unpack")
"""One thread: no more than one body is unpacked at a time that is not yet in a queue."""


@router.post(
    "/v2/models/{name}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer(request: Request, name: str) -> Response:
    """Run a model on the inputs of one request, JSON or binary tensor data."""
    return await _infer(request, find_model(request, name))


@router.post(
    "/v2/models/{name}/versions/{version}/infer",
    openapi_extra=INFER_OPERATION,
    responses=INFER_RESPONSES,
    response_class=Response,
)
async def infer_version(request: Request, name: str, version: str) -> Response:
    """Run one version of a model on the inputs of one request, JSON or binary tensor data."""
    return await _infer(request, find_model(request, name, version))


async def _infer(request: Request, model: LoadedModel) -> Response:
    services = services_of(request)
    request_id = context_of(request).request_id
    with services.dispatcher.admission(model, Surface.V2, request_id):
        intake = V2Intake(model, request_id, request.headers.get, services.settings.limits)
        call = await _receive(request, intake)
    answer = await services.dispatcher.answer(call, request.receive)
    return Response(answer.body, headers=answer.headers, media_type=answer.media_type)


async def _receive(request: Request, intake: V2Intake) -> Call[Answer]:
    settings = services_of(request).settings
    body = await read_body(request, settings.limits, settings.timeout, is_encoded=True, lead=intake.lead)
    received = perf_counter_ns()
    if not intake.is_compressed:
        return intake.call(body, received)
    return await get_running_loop().run_in_executor(_unpacking, intake.call, body, received)
