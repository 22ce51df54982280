"""`POST /infer`, and the response of every request that runs a model, whichever protocol it speaks."""

from functools import partial
from time import perf_counter_ns

from fastapi import APIRouter, Request, Response
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from service.codec.response import EncodedResponse
from service.context import context_of
from service.decoding import DECODERS
from service.description.openapi import INFER_OPERATION, INFER_RESPONSES
from service.errors import ServiceError
from service.http.body import read_body
from service.infer.exchange import InferExchange
from service.infer.predict import PredictExchange
from service.services import services_of
from service.v2.exchange import V2Exchange

_JOINED_BYTES = 1 << 16
"""Maximum length of a body whose pieces are joined: copying them costs less than sending each."""


async def run_model(
    request: Request,
    name: str | None,
    version: str | None,
    protocol: type[InferExchange] | type[PredictExchange] | type[V2Exchange],
) -> Response:
    """Respond to a request that runs a model.

    Args:
        request: the request, its body not read yet.
        name: the model; None for the only one.
        version: its version; None for any.
        protocol: reads the request, and encodes the result of the run.

    Raises:
        ServiceError: why there is no response.
        ClientDisconnect: the client has left.
    """
    services, context = services_of(request), context_of(request)
    scheduler, timeout, began = services.scheduler, services.settings.timeout, perf_counter_ns()
    model = services.choose_model(name, version, context.headers)
    context.model = model.name
    try:
        scheduler.check_room(model, context.client)  # before the body is read in vain
        exchange = protocol.from_request(request, model, services.limits)
        body = await read_body(
            request,
            services.limits,
            timeout,
            services.lifecycle,
            is_encoded=exchange.takes_encoded_body,
            padding=exchange.padding,
        )
        received = perf_counter_ns()
        if exchange.is_unpacked_first(len(body)):
            call = await services.unpacking.run(
                context.client, partial(DECODERS.call, partial(exchange.call, body, received)), timeout
            )
        else:
            call = exchange.call(body, received)
        del body  # the exchange drops it once it is decoded
    except (ServiceError, ClientDisconnect) as error:
        scheduler.record_refusal(model, protocol.name, context.request_id, began, error)
        raise
    response = await scheduler.run(call, request.receive)
    return ModelResponse(response)


class ModelResponse(Response):
    """Sends a response; the pieces of a large body each from where they lie.

    Args:
        response: the response.
    """

    def __init__(self, response: EncodedResponse) -> None:
        self.status_code, self.background = 200, None
        self.media_type = response.media_type
        self._response, self._length = response, response.length
        self.init_headers({**response.headers, "content-length": str(self._length)})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response by an ASGI channel."""
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        response = self._response
        if self._length <= _JOINED_BYTES:
            await send({"type": "http.response.body", "body": response.body})
            return
        *pieces, last = response.pieces
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": last})


router = APIRouter(tags=["inference"])


@router.post("/infer", openapi_extra=INFER_OPERATION, responses=INFER_RESPONSES, response_class=Response)
async def infer(request: Request) -> Response:
    """Run a model on the inputs of one request, and show what every layer did."""
    query = request.query_params
    return await run_model(request, query.get("model"), query.get("version"), InferExchange)
