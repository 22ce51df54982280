"""`POST /v2/models/M/infer`."""

from asyncio import get_running_loop
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.body import read_body
from service.call import Call, Surface
from service.context import context_of
from service.loaded_model import LoadedModel
from service.routes.v2.model import find_model
from service.services import services_of
from service.v2.binary import HEADER, lead_of, parse_header_length
from service.v2.compression import IDENTITY, choose_encoding, parse_encoding
from service.v2.exchange import Exchange
from service.v2.openapi import INFER_OPERATION, INFER_RESPONSES
from service.v2.parameters import Parameters

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
    limits = services.settings.limits
    with services.dispatcher.admission(model, Surface.V2, context_of(request).request_id):
        encoding = parse_encoding(request.headers.get("content-encoding"))
        header_length = parse_header_length(request.headers.get(HEADER))
        lead = lead_of(header_length) if encoding == IDENTITY else 0
        body = await read_body(request, limits, services.settings.timeout, is_encoded=True, lead=lead)
        received = perf_counter_ns()
        answer_encoding = choose_encoding(request.headers.get("accept-encoding"))
        exchange = Exchange(model, body, encoding, header_length, answer_encoding, limits, lead)
        del body  # the exchange drops it when it is decoded
        parameters = await _scheduling(exchange)
    call = Call(
        model=model,
        surface=Surface.V2,
        request_id=context_of(request).request_id,
        decode=exchange.decode,
        encode=exchange.encode,
        received_ns=received,
        timeout=parameters.timeout,
        priority=parameters.priority,
    )
    answer = await services.dispatcher.answer(call, request.receive)
    return Response(answer.body, headers=answer.headers, media_type=answer.media_type)


async def _scheduling(exchange: Exchange) -> Parameters:
    if not exchange.is_compressed:
        return exchange.scheduling()
    return await get_running_loop().run_in_executor(_unpacking, exchange.scheduling)
