"""What every call passes: its id, key, the limits, the drain; how it is recorded, and how errors become responses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

import grpc

from service.context import REQUEST_ID_HEADER, RequestContext, address_of, choose_request_id
from service.errors import ServiceError, as_service_error, shutting_down
from service.grpc.status import code_of, details_of, metadata_of, status_of
from service.grpc.unread_responses import SMALL_BYTES, UnreadResponses
from service.grpc.wire import malformed
from service.http.access import Access
from service.http.body import BodyBudget, Reservation
from service.http.error_handlers import internal_error
from service.lifecycle import Phase
from service.log_context import request_id
from service.services import Services

if TYPE_CHECKING:
    from service.telemetry.spans import CallSpan

_ID_KEY = REQUEST_ID_HEADER.lower()
_READING, _CHANGE = ("GET", "/v2"), ("POST", "/v2/logging")
"""Requests over HTTP that need the keys of calls: of all, and of those that change the server."""

Rpc: TypeAlias = grpc.aio.ServicerContext
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Incoming:
    """A call.

    Attributes:
        rpc: the call, for gRPC.
        context: its id, and who sent it.
        path: service and name of the call, as `/inference.GRPCInferenceService/ModelInfer`.
        is_polled: whether it is served while the server drains, and to everybody at any rate.
        data: its message, once that has arrived; empty where there are many, or once it is parsed.
        own_id: the client's id of the request to run a model, once it is parsed.
    """

    rpc: Rpc
    context: RequestContext
    path: str = ""
    is_polled: bool = False
    data: bytes = b""
    own_id: str = ""


Handler = Callable[[Incoming], Awaitable[bytes]]
"""Returns the response message of a call; raises ServiceError."""


class Front:
    """Admits calls by the rules that hold over HTTP, and refuses others.

    Args:
        services: the parts of the server.
        access: which calls need which key.
        budget: the memory that messages may take, together with the bodies of HTTP requests.

    Attributes:
        services: the parts of the server.
        unread: the responses that clients have not read yet.
        spans: makes the spans of calls; None where the settings ask for none.
    """

    def __init__(self, services: Services, access: Access, budget: BodyBudget) -> None:
        self.services = services
        self._access = access
        self._budget = budget
        self.unread = UnreadResponses(services.settings.unsent_bytes)
        self.spans = services.telemetry.spans

    def unary(self, path: str, handler: Handler, *, is_polled: bool = False) -> grpc.RpcMethodHandler:
        """Return what serves a call with one message each way.

        To gRPC it is one that takes a stream, so that messages are read when the call has been admitted, and not
        before.

        Args:
            path: as of `Incoming`.
            handler: makes the response.
            is_polled: as of `Incoming`.
        """

        async def respond(_requests: object, rpc: Rpc) -> bytes:
            return await self._serve(open_call(rpc, path, is_polled), partial(self.with_message, handler))

        return grpc.stream_unary_rpc_method_handler(respond)

    def stream(self, path: str, handler: Handler, *, is_polled: bool = False) -> grpc.RpcMethodHandler:
        """Return what serves a call whose handler writes the responses, and returns none; arguments as for `unary`."""

        async def exchange(_requests: object, rpc: Rpc) -> None:
            await self._serve(open_call(rpc, path, is_polled), handler)

        return grpc.stream_stream_rpc_method_handler(exchange)

    async def with_message(self, handler: Handler, incoming: Incoming) -> bytes:
        """Return what a handler returns once the message of its call has arrived, which takes a part of the budget."""
        rpc, context = incoming.rpc, incoming.context
        with self.accepted(incoming) as reservation:
            incoming.data = await self._receive(rpc)
            reservation.expect(len(incoming.data))
            response = await handler(incoming)
        if len(response) > SMALL_BYTES:
            self.unread.add_until_done(context.client, len(response), rpc)
        rpc.set_trailing_metadata(((_ID_KEY, context.request_id),))
        return response

    @contextmanager
    def accepted(self, incoming: Incoming) -> Iterator[Reservation]:
        """Count a request, for the drain, until its response is made, and give its message a part of the budget."""
        lifecycle, reservation = self.services.lifecycle, Reservation(self._budget, None, incoming.context)
        if not incoming.is_polled:
            lifecycle.begin_request()
        try:
            yield reservation
        finally:
            reservation.release()
            if not incoming.is_polled:
                lifecycle.end_request()

    async def attempt(
        self, handler: Handler, incoming: Incoming, span: "CallSpan | None"
    ) -> bytes | ServiceError:
        """Return what a handler returns, or the error for the client; faults of the server are logged.

        Args:
            handler: makes the response.
            incoming: its call, or a request of that.
            span: ends when it returns.
        """
        outcome: bytes | ServiceError | None = None
        try:
            outcome = await handler(incoming)
        except grpc.aio.AbortError:  # gRPC knows of the end of the call already
            raise
        except Exception as error:
            outcome = as_service_error(error)
            if outcome is None:
                _logger.exception("unhandled error")
                outcome = internal_error(incoming.context.request_id)
            error.__traceback__ = None  # its frames refer to the error: together they would outlive the call
        finally:
            if span is not None:
                span.end(status_of(outcome))
        return outcome

    def check_change(self, context: RequestContext) -> None:
        """Check whether a call may change the server, which one of several processes would do alone.

        Raises:
            ServiceError: 401, 403.
        """
        self._check_key(_CHANGE, context)
        self.services.check_change()

    async def _serve(self, incoming: Incoming, handler: Handler) -> bytes:
        """Return the last response message of a call, or end it with an error; record it."""
        context, path = incoming.context, incoming.path
        outcome = span = None
        if self.spans is not None and not incoming.is_polled:
            span = self.spans.begin_call(path[1:], context.headers)
        try:
            outcome = await self.attempt(partial(self._admit, handler), incoming, span)
            if isinstance(outcome, bytes):
                return outcome
            if outcome.status == 503:
                await self.services.error_throttle.wait(context.client)
            metadata = (*metadata_of(outcome), (_ID_KEY, context.request_id))
            await incoming.rpc.abort(code_of(outcome), details_of(outcome), metadata)
            raise AssertionError("a refused call goes on")
        finally:
            self.services.telemetry.request_log.record_call(context, path, status_of(outcome))

    async def _admit(self, handler: Handler, incoming: Incoming) -> bytes:
        """Return what a handler returns, if its call may be made now, and by its client.

        Raises:
            ServiceError: 401, 429 or 503.
        """
        if not incoming.is_polled:
            if self.services.lifecycle.phase is Phase.DRAINING:
                raise shutting_down()
            self._check_key(_READING, incoming.context)
            self.unread.check(incoming.context.client)
        return await handler(incoming)

    def _check_key(self, call: tuple[str, str], context: RequestContext) -> None:
        """Check whether a call has the key that a request over HTTP needs; a client is known by its key."""
        client = self._access.check(*call, context.headers.items())
        if client is not None:
            context.client = client

    async def _receive(self, rpc: Rpc) -> bytes:
        """Return the message of a call, once it has arrived.

        Raises:
            ServiceError: 400 `invalid_message` where there is none, 408 `body_timeout`, 503 `shutting_down`.
        """
        timeout, lifecycle = self.services.settings.timeout, self.services.lifecycle
        try:
            async with asyncio.timeout(timeout) as deadline:
                with lifecycle.receiving(deadline):
                    data = await rpc.read()
        except TimeoutError as error:
            if lifecycle.is_drain_over:
                raise shutting_down() from error
            message = f"the message took longer than {timeout:g} s to arrive"
            raise ServiceError(408, "body_timeout", message, {"timeout": timeout}) from error
        if not isinstance(data, bytes):
            raise malformed("there is none")
        return data


def open_call(rpc: Rpc, path: str, is_polled: bool) -> Incoming:
    """Start the context of a call, in the task that serves it."""
    headers: dict[bytes, bytes] = {}
    for key, value in rpc.invocation_metadata() or ():
        headers.setdefault(key.encode(), value.encode() if isinstance(value, str) else value)
    context = RequestContext(choose_request_id(headers), headers=headers, client=client_of(rpc.peer()))
    request_id.set(context.request_id)
    return Incoming(rpc, context, path, is_polled)


@lru_cache(4096)
def client_of(peer: str) -> str:
    """Return where a client is, of IPv6 the network.

    Args:
        peer: as gRPC gives it, such as `ipv4:127.0.0.1:50000` or `ipv6:%5B::1%5D:50000`.
    """
    kind, _, place = peer.partition(":")
    if kind not in ("ipv4", "ipv6"):
        return peer
    host = unquote(place).rpartition(":")[0]
    return address_of((host.strip("[]"),))
