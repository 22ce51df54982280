"""The routes that run models, of every surface.

They are plain ASGI: what FastAPI does for each request costs more than the run of a small model.
`routes/infer_description.py` and its namesake in `v2` describe them for OpenAPI.
"""

from functools import lru_cache, partial
from time import perf_counter_ns

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from service.context import RequestContext, context_in
from service.errors import ServiceError
from service.http.body import read_body
from service.http.direct_route import DirectRoute
from service.repository.loaded_model import LoadedModel
from service.scheduling.answer import Answer
from service.scheduling.call import Call
from service.scheduling.peer_turns import PeerTurns
from service.services import Services
from service.surfaces import SURFACES, Surface

_JOINED_BYTES = 1 << 16
"""Longest body whose pieces are joined: to copy them costs less than to send each."""
_HEADERS_KEPT = 256


class InferenceEndpoint:
    """Answers the inference requests of one surface: an ASGI application.

    Args:
        surface: the surface.
        services: the parts of the server.
        turns: of the bodies that are not in a queue yet, no more than one is decompressed or parsed at a time.
    """

    def __init__(self, surface: Surface, services: Services, turns: PeerTurns) -> None:
        self._surface = surface
        self._services = services
        self._turns = turns
        self._limits = services.settings.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request.

        Raises:
            ServiceError: why there is no answer.
            ClientDisconnect: the client has left.
        """
        request = Request(scope, receive)
        context = context_in(scope)
        model = self._services.choose_model(*self._surface.model_reference(request), context.headers)
        context.model = model.name
        dispatcher, began = self._services.dispatcher, perf_counter_ns()
        try:
            dispatcher.check_room(model, context.client)  # before the body is read in vain
            call = await self._receive(request, model, context)
        except (ServiceError, ClientDisconnect) as error:
            dispatcher.observe_refusal(model, self._surface.name, context.request_id, began, error)
            raise
        answer = await dispatcher.answer(call, receive)
        await send_answer(answer, send)

    async def _receive(self, request: Request, model: LoadedModel, context: RequestContext) -> Call[Answer]:
        head = self._surface.open_head(request, model, context.request_id, self._limits)
        timeout = self._services.settings.timeout
        body = await read_body(
            request,
            self._limits,
            timeout,
            self._services.lifecycle,
            is_encoded=head.takes_encoded_body,
            padding=head.padding,
        )
        received = perf_counter_ns()
        if not head.is_heavy(len(body)):
            return head.call(body, received)
        return await self._turns.run(context.client, partial(head.call, body, received), timeout)


def inference_routes(services: Services) -> list[DirectRoute]:
    """Return a route for each inference path of each surface.

    Args:
        services: the parts of the server.
    """
    turns = PeerTurns("heavy-calls")
    return [
        DirectRoute(path, InferenceEndpoint(surface, services, turns), methods=["POST"])
        for surface in SURFACES
        for path in surface.inference_paths
    ]


async def send_answer(answer: Answer, send: Send) -> None:
    """Send an answer by an ASGI channel; the pieces of a large body each from where they lie."""
    length = answer.length
    headers = [_encode_header(name, value) for name, value in answer.headers.items()]
    headers.append((b"content-length", b"%d" % length))
    headers.append(_encode_header("content-type", answer.media_type))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if length <= _JOINED_BYTES:
        await send({"type": "http.response.body", "body": answer.body})
        return
    *pieces, last = answer.pieces
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": last})


@lru_cache(_HEADERS_KEPT)
def _encode_header(name: str, value: str) -> tuple[bytes, bytes]:
    return name.lower().encode(), value.encode()
