"""`POST /v1/embeddings`: vectors of texts, as OpenAI's clients ask for them."""

from time import perf_counter_ns

from fastapi import APIRouter, Request, Response

from service.context import context_of
from service.description.openapi import error_responses
from service.http.body import read_body
from service.infer.embedding_exchange import (
    EmbeddingExchange,
    EmbeddingRequest,
    EmbeddingResponse,
    parse_embedding_request,
)
from service.scheduling.job import Job, ProtocolName, Timestamps
from service.services import services_of

router = APIRouter(tags=["inference"])


@router.post(
    "/v1/embeddings",
    response_class=Response,
    responses={
        200: {"model": EmbeddingResponse},
        **error_responses(400, 404, 408, 413, 415, 422, 500, 503, 504),
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": EmbeddingRequest.model_json_schema()}},
        }
    },
)
async def embed(request: Request) -> Response:
    """Return a vector for each text."""
    services = services_of(request)
    limits, context = services.settings.limits, context_of(request)
    body = await read_body(request, limits, services.settings.timeout, services.lifecycle)
    asked = parse_embedding_request(body)
    model = services.choose_model(asked.model, None, context.headers)
    context.model = model.name
    exchange = EmbeddingExchange(model, asked, limits)
    services.scheduler.check_room(model, context.client)
    call = Job(
        model=model,
        protocol=ProtocolName.INFER,
        request_id=context.request_id,
        decode=exchange.decode,
        encode=exchange.encode,
        timestamps=Timestamps(perf_counter_ns()),
        client=context.client,
    )
    response = await services.scheduler.run(call, request.receive)
    return Response(response.body, media_type=response.media_type)
