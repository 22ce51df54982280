"""A client's connection: uvicorn's, with limits on a request's head, and JSON errors for bytes that are not HTTP.

The HTTP protocol class is not part of uvicorn's public interface: its names are used in this module and nowhere else,
and pyproject.toml sets an upper bound on uvicorn's version.
"""

import asyncio
import logging
from http import HTTPStatus
from typing import Any, cast

import orjson
from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.context import REQUEST_ID_HEADER, choose_request_id, mark_arrived
from service.errors import ServiceError
from service.log_context import FIELDS
from service.server.eager_task import start_task
from service.server.reader import PacketReader
from service.server.transport import CoalescingTransport

HEAD_BYTES = 64 << 10
"""Most bytes of a request line and its headers, counted from the second packet that they arrive in."""
HEAD_SECONDS = 20.0
"""Seconds that a client has to send them."""
READ_AHEAD_BYTES = 1 << 15
"""Bytes of a body that are read before the application asks for them; the packet that they arrive in may have more."""

_logger = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Speaks HTTP/1.1 with one client."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._reader = PacketReader(self)
        self._in_head = False
        self._is_parsing = False
        self._begun: tuple[RequestResponseCycle, Any] | None = None
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        """Wait for a request."""
        coalescing = CoalescingTransport(transport, self.loop)
        super().connection_made(coalescing)  # type: ignore[arg-type]  # it delegates all that it does not define
        self._await_head()
        transport.set_protocol(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a packet, and refuse a head that does not end."""
        if self.transport.is_closing():
            return  # a TLS connection may still deliver data after it has been closed
        was_in_head = self._in_head
        if was_in_head:
            self._head_bytes += len(data)
        self._is_parsing = True
        super().data_received(data)
        self._is_parsing = False
        if self._begun is not None:
            begun, self._begun = self._begun, None
            self._start(*begun)
        if self._in_head and (not was_in_head or self._head_timer is None):
            self._await_head()  # most heads arrive in one packet and need no timer
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            message = f"the request's head has more than {HEAD_BYTES} bytes"
            self._refuse(ServiceError(431, "head_too_large", message, {"limit": HEAD_BYTES}))

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        super().on_message_begin()
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Note that a head has ended."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body, and stop reading when the application does not keep up."""
        super().on_body(body)
        if len(self.cycle.body) >= READ_AHEAD_BYTES and not self.cycle.response_complete:
            self.flow.pause_reading()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request, at the end of the packet that its head arrived in: most bodies are complete by then.

        Its call is in the queue before the next packet is read, so that workers are not idle while the event loop reads
        from all the connections that have sent something. Earlier releases of uvicorn do not call this.
        """
        if self._is_parsing:
            self._begun = cycle, app
        else:
            self._start(cycle, app)

    def _start(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not cycle.more_body:
            mark_arrived(cast("Scope", cycle.scope))
        task = start_task(self.loop, cycle.run_asgi(app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def send_400_response(self, msg: str) -> None:
        """Answer what cannot be parsed."""
        del msg
        self._refuse(ServiceError(400, "invalid_http", "what came is not a sound HTTP/1.1 request"))

    def _await_head(self) -> None:
        self._stop_timer()
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._await_head()  # the request before this one is still being answered
        elif self._in_head:
            message = f"the request's head took longer than {HEAD_SECONDS:g} s to arrive"
            self._refuse(ServiceError(408, "head_timeout", message, {"timeout": HEAD_SECONDS}))
        else:
            self.transport.close()

    def _refuse(self, error: ServiceError) -> None:
        """Answer in place of the application, which never sees the request, and close."""
        answered = self.cycle is None or self.cycle.response_complete
        request_id = choose_request_id(dict(self.headers or ()) if self._in_head or not answered else {})
        fields = {"request_id": request_id, "status": error.status, "code": error.code}
        _logger.info("request refused", extra={FIELDS: fields})
        half_answered = self.cycle is not None and self.cycle.response_started
        if not half_answered or self.cycle.response_complete:
            body = orjson.dumps(error.body())
            lines = (
                f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                "Connection: close",
                f"{REQUEST_ID_HEADER}: {request_id}",
            )
            self.transport.write("\r\n".join((*lines, "", "")).encode() + body)
        self.transport.close()
