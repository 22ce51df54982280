"""What every call passes: its id, key, the limits, the drain; how it is recorded, and how errors become responses."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias
from urllib.parse import unquote

import grpc

from engine import InputError, LayerError
from service.context import REQUEST_ID_HEADER, RequestContext, address_of, choose_request_id
from service.errors import ServiceError, engine_error, out_of_memory, shutting_down
from service.grpc.status import CANCELLED, OK, code_of, details_of, metadata_of
from service.grpc.unread_responses import SMALL_BYTES, UnreadResponses
from service.grpc.wire import malformed
from service.http.access import Access
from service.http.body import BodyBudget, Reservation
from service.http.error_handlers import internal_error
from service.lifecycle import Phase
from service.log_context import request_id
from service.services import Services

_ID_KEY = REQUEST_ID_HEADER.lower()

Rpc: TypeAlias = grpc.aio.ServicerContext
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Method:
    """A call that clients may make.

    Attributes:
        path: its service and name, as `/inference.GRPCInferenceService/ModelInfer`.
        http_method: method of the same call over HTTP, which decides what key it needs.
        http_path: its path over HTTP.
        is_polled: whether it is served while the server drains, and to everybody at any rate.
    """

    path: str
    http_method: str
    http_path: str
    is_polled: bool = False


@dataclass(slots=True)
class Incoming:
    """A call whose message has arrived.

    Attributes:
        rpc: the call, for gRPC.
        context: its id, and who sent it.
        data: its message.
    """

    rpc: Rpc
    context: RequestContext
    data: bytes


UnaryHandler = Callable[[Incoming], Awaitable[bytes]]
"""Returns the response message of a call; raises ServiceError."""

Run = Callable[[Rpc, RequestContext], Awaitable[bytes]]
"""Returns the message that ends a call, whose messages it reads itself; raises ServiceError."""


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

    async def handle(self, method: Method, response: UnaryHandler, rpc: Rpc) -> bytes:
        """Return the response to a call with one message, or end it with an error.

        Args:
            method: which call it is.
            response: makes the response.
            rpc: the call, its message not read yet.
        """
        return await self.run(method, partial(self._respond, method, response), rpc)

    async def run(self, method: Method, run: Run, rpc: Rpc) -> bytes:
        """Return the last response message of a call, or end it with an error; record it.

        Args:
            method: which call it is.
            run: admits the call, and returns its response.
            rpc: the call.
        """
        context = open_call(rpc, client_of(rpc.peer()))
        status = CANCELLED
        span = None
        if self.spans is not None and not method.is_polled:
            span = self.spans.begin_call(method.path[1:], context.headers)
        try:
            response = await run(rpc, context)
            status = OK
        except Exception as error:
            refusal = explain(error, context.request_id)
            status = code_of(refusal).name
            error.__traceback__ = None  # its frames refer to the error: together they would outlive the call
            if refusal.status == 503:
                await self.services.error_throttle.wait(context.client)
            metadata = (*metadata_of(refusal), (_ID_KEY, context.request_id))
            await rpc.abort(code_of(refusal), details_of(refusal), metadata)
            raise AssertionError("a refused call goes on") from error
        finally:
            self.services.telemetry.request_log.record_call(context, method.path, status)
            if span is not None:
                span.end(status)
        return response

    def admit(self, method: Method, context: RequestContext) -> None:
        """Check whether a call may be made now, and by its client.

        Raises:
            ServiceError: 401, 403 or 503.
        """
        if method.is_polled:
            return
        if self.services.lifecycle.phase is Phase.DRAINING:
            raise shutting_down()
        if self._access.is_limited:
            self.check_key(method.http_method, method.http_path, context)
        self.unread.check(context.client)

    def check_key(self, http_method: str, http_path: str, context: RequestContext) -> None:
        """Check whether a call has the key that the same call needs over HTTP; a client is known by its key.

        Raises:
            ServiceError: 401 or 403.
        """
        client = self._access.check(http_method, http_path, context.headers.items())
        if client is not None:
            context.client = client

    @contextmanager
    def accepted(self, context: RequestContext, *, is_counted: bool = True) -> Iterator[Reservation]:
        """Count a request, for the drain, until its response is made, and give its message a part of the budget."""
        lifecycle, reservation = self.services.lifecycle, Reservation(self._budget, None, context)
        if is_counted:
            lifecycle.begin_request()
        try:
            yield reservation
        finally:
            reservation.release()
            if is_counted:
                lifecycle.end_request()

    async def _respond(
        self, method: Method, response: UnaryHandler, rpc: Rpc, context: RequestContext
    ) -> bytes:
        self.admit(method, context)
        with self.accepted(context, is_counted=not method.is_polled) as reservation:
            data = await self._receive(rpc)
            reservation.expect(len(data))
            answered = await response(Incoming(rpc, context, data))
        if len(answered) > SMALL_BYTES:
            self.unread.add_until_done(context.client, len(answered), rpc)
        rpc.set_trailing_metadata(((_ID_KEY, context.request_id),))
        return answered

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


def open_call(rpc: Rpc, client: str) -> RequestContext:
    """Start the context of a call, in the task that serves it.

    Args:
        rpc: the call.
        client: address of its client.
    """
    headers: dict[bytes, bytes] = {}
    for key, value in rpc.invocation_metadata() or ():
        headers.setdefault(key.encode(), value.encode() if isinstance(value, str) else value)
    context = RequestContext(choose_request_id(headers), headers=headers, client=client)
    request_id.set(context.request_id)
    return context


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


def explain(error: Exception, own_id: str) -> ServiceError:
    """Return the error for the client; faults of the server are logged.

    Raises:
        Exception: the error itself, where gRPC knows of the end of the call already.
    """
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, InputError | LayerError):
        return engine_error(error)
    if isinstance(error, MemoryError):
        return out_of_memory()
    _logger.error("unhandled error", exc_info=error)
    return internal_error(own_id)
