"""One client's connection: uvicorn's, with bounds on a request's head, and the one error shape for what is no HTTP."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any, cast

import orjson
from httptools import HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from service.context import REQUEST_ID_HEADER, choose_request_id
from service.errors import ServiceError
from service.log_context import FIELDS
from service.scheduling.intake import Bytes
from service.scheduling.refusals import shutting_down
from service.server.fast_path import BodyReader, Desk, DirectRequest
from service.server.reader import PacketReader
from service.server.transport import JoiningTransport

HEAD_BYTES = 64 << 10
"""Most bytes of a request line and its headers, counted from the second packet that they come in."""
MUCH = 1 << 16
"""Bytes of a body from which on it is worth while to read them past the parser."""
UNASKED = 1 << 15
"""Bytes of a body that are read before the application asks for them; the packet that they came in may have more."""
HEAD_SECONDS = 20.0
"""Seconds that a client has to send them."""

LAST_SECONDS = 3.0
"""Seconds that a body may still take to come when the server ends; uvicorn cuts connections two seconds later."""

_logger = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Speaks HTTP/1.1 with one client.

    Args:
        desk: takes the requests that need no application; None where all do.
    """

    def __init__(self, *arguments: Any, desk: Desk | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._desk = desk
        self._direct: DirectRequest | None = None
        self._has_taken = False
        self._reader = PacketReader(self)
        self._in_head = False
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Wait for a request."""
        super().connection_made(JoiningTransport(transport, self.loop))  # type: ignore[arg-type]  # but for its writes it is one
        self._await_head()
        transport.set_protocol(self._reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_timer()
        if self._direct is not None:
            self._direct.leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a packet, and refuse a head without an end."""
        if self.transport.is_closing():
            return  # a connection by TLS may still be told of what comes
        self._has_taken = False
        was_in_head = self._in_head
        if was_in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and (not was_in_head or self._head_timer is None):
            self._await_head()  # most heads come in one packet: a timer for each would be for nothing
        if self._direct is not None and self._direct.is_reading:
            self._read_rest(self._direct)
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            message = f"the request's head has more than {HEAD_BYTES} bytes"
            self._refuse(ServiceError(431, "head_too_large", message, {"limit": HEAD_BYTES}))

    def shutdown(self) -> None:
        """Answer what has been accepted, then close; a body that is still coming has a last moment."""
        super().shutdown()
        if self._direct is not None:
            self.loop.call_later(LAST_SECONDS, self._direct.refuse, shutting_down())

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        super().on_message_begin()
        self._unset_keepalive_if_required()  # the request before it may have been answered within this packet
        self._in_head = True

    def on_headers_complete(self) -> None:
        """Note that a head has ended."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_timer()
        self._direct = self._take() or self._direct
        if self._direct is None or not self._direct.is_reading:
            super().on_headers_complete()
        else:
            self.cycle = _as_cycle(self._direct)

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        if self._direct is not None and self._direct.is_reading:
            self._direct.add(body)
            return
        super().on_body(body)
        if len(self.cycle.body) >= UNASKED and not self.cycle.response_complete:
            self.flow.pause_reading()

    def on_message_complete(self) -> None:
        """Note that a request has come to its end."""
        if self._direct is not None and self._direct.is_reading:
            self._direct.complete()
        else:
            super().on_message_complete()

    def send(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: Sequence[Bytes]) -> None:
        """Send an answer, its body in pieces."""
        if self.transport.is_closing():
            return
        pieces = [STATUS_LINE[status]]
        for name, value in chain(self.server_state.default_headers, headers):
            pieces += (name, b": ", value, b"\r\n")
        pieces.append(b"\r\n")
        self.transport.writelines((b"".join(pieces), *body))

    def answered(self, request: DirectRequest) -> None:
        """Go on after a request, or close where it is the last."""
        self._direct = None
        if cast("object", self.cycle) is request:
            self.cycle = _as_cycle(None)  # as at first: nothing of a request outlives it
        if not request.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _read_rest(self, request: DirectRequest) -> None:
        """Wait for the rest of a body; much of it is read past the parser."""
        request.await_rest()
        if request.missing >= MUCH:
            reader = BodyReader(request, self, partial(self._go_on, request))
            self.transport.set_protocol(reader)

    def _go_on(self, request: DirectRequest) -> None:
        """Parse again what comes, after a body that the parser has not seen the end of."""
        self.transport.set_protocol(self._reader)
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the base class has it
        request.complete()

    def _take(self) -> DirectRequest | None:
        """Return the request whose head has come where it needs no application, and nothing is before it.

        No more than one of a packet: many that are refused at once would keep the event loop from all else.
        """
        is_free = not self._has_taken and (self.cycle is None or self.cycle.response_complete)
        if self._desk is None or not is_free or self.flow.write_paused or self.transport.is_closing():
            return None
        if self.parser.get_http_version() != "1.1":
            return None
        request = self._desk.take(self, self.parser.get_method(), self.url, self.headers)
        if request is not None:
            self._has_taken = True
            request.keep_alive = self.parser.should_keep_alive()
        return request

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
        request_id = choose_request_id(self.headers or () if self._in_head or not answered else ())
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


def _as_cycle(request: DirectRequest | None) -> RequestResponseCycle:
    """Return a request as what the base class takes it for: it looks at the attributes that both have."""
    return cast("RequestResponseCycle", request)
