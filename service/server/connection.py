"""A client's connection: uvicorn's, with limits on a request's head, and JSON errors for bytes that are not HTTP.

The HTTP protocol class is not part of uvicorn's public interface: its names are used in this module and nowhere else,
and pyproject.toml sets an upper bound on uvicorn's version.
"""

import asyncio
import logging
from collections import deque
from functools import partial
from http import HTTPStatus
from math import inf
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.config.limits import too_large
from service.context import REQUEST_ID_HEADER, address_of, choose_request_id, mark_arrived
from service.errors import ServiceError
from service.http.paths import is_urgent
from service.log_context import FIELDS
from service.server.connections import DRIP_RATE, LEAST_RATE, SEND_TIMEOUT, Connections
from service.server.message_head import authority_of, check_head
from service.server.reader import PacketReader

HEAD_BYTES = 64 << 10
"""Maximum bytes of a request line and its headers, counted from the second packet that they arrive in; of blank lines
before a request; and of a body's chunk extensions and trailers."""
CHUNK_FRAME_BYTES = 24
"""Bytes that the size of a chunk and the line ends around it may have, beside that."""
HEAD_SECONDS = 20.0
"""Seconds that a client has to send them."""
FREE_CHUNKS, LEAST_CHUNK_BYTES = 10_000, 64
"""A body may have so many chunks, and one more for each of so many bytes: tiny ones take long to parse."""
DROPPED_BYTES = 4 << 20
"""Maximum bytes that a client may send on after it was refused, and still get the response for sure."""
FINISH_SECONDS = 2.0
"""Seconds that it has to read the response and close the connection."""
GRACE_SECONDS = 1.0
"""The pace of a client is judged when it has had so long to send or read."""
TURN_BYTES, PART_BYTES = 1 << 12, 1 << 7
"""Bytes of heads and chunks that are parsed before others get their turn, and how many each part of them counts for at
least: small ones take as long as large ones."""
_END = b"\r\n\r\n"
"""The end of a head, and of a chunked body."""

_logger = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Speaks HTTP/1.1 with one client: a request is parsed when the response to the one before it is complete.

    Args:
        arguments: as for uvicorn's own.
        shared: what all connections of the server share.
        options: as for uvicorn's own.

    Attributes:
        address: where the client is: of IPv6 the network; empty where that is not known.
        since: when the client began to do what it does, such as to send a body, in seconds of the event loop's clock.
    """

    def __init__(self, *arguments: Any, shared: Connections, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._shared = shared
        self.address = ""
        self.since = 0.0
        self._held = b""  # has arrived and is not parsed yet
        self._in_head = False
        self._body_length = self._body_bytes = self._framing_bytes = self._chunks = 0
        self._unsent = 0  # bytes that the client had yet to read at `since`
        self._dropped_bytes = 0
        self._fault: ServiceError | None = None
        self._is_last = self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        """Wait for a request."""
        super().connection_made(transport)
        self.address, self.since = address_of(self.client), self.loop.time()
        transport.set_protocol(PacketReader(self))
        self._is_last = self._shared.is_leaving
        self._shared.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._shared.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a packet, or hold it until the request before it has its response."""
        if self._is_refused or self.transport.is_closing():  # TLS may deliver data after it has been closed
            self._dropped_bytes += len(data)
            if self._dropped_bytes > DROPPED_BYTES:
                self.abort()
            return
        self._held += data
        if self.is_running:
            self.transport.pause_reading()  # not by `flow`, which reads on when the application asks for a body
        else:
            self._parse()

    def on_message_begin(self) -> None:
        """Note that a head begins.

        Raises:
            ServiceError: the request before it has no response yet: it has ended where `_end_of_part` expects no end.
        """
        if self.is_running:
            self._fault = ServiceError(400, "invalid_http", "malformed end of a request")
            raise self._fault
        super().on_message_begin()
        self._in_head, self.since = True, self.loop.time()
        self._framing_bytes = 0

    def on_headers_complete(self) -> None:
        """Note that a head has ended.

        Raises:
            ServiceError: RFC 9112 has it refused; the parser ends with it.
        """
        try:
            self._body_length = check_head(self.parser.get_http_version(), self.headers)
            if not self.url.startswith(b"/"):
                self._replace_host(authority_of(self.url))
        except ServiceError as error:
            self._fault = error
            raise
        self._in_head, self.since = False, self.loop.time()
        self._framing_bytes = self._body_bytes = self._chunks = 0
        super().on_headers_complete()

    def _replace_host(self, authority: bytes | None) -> None:
        """Replace `Host` by the authority of an absolute-form target (RFC 9112, 3.2.2), which is checked as it is."""
        if authority is not None:
            self.headers[:] = [field for field in self.headers if field[0] != b"host"]
            self.headers.append((b"host", authority))

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        super().on_body(body)
        self._body_bytes += len(body)
        self._framing_bytes -= len(body)
        if self.cycle.response_complete:
            self.since = self.loop.time()  # nobody reads it, but it is to arrive

    def on_chunk_header(self) -> None:
        """Count a chunk of a body.

        Raises:
            ServiceError: there are too many for so few bytes; the parser ends with it.
        """
        self._chunks += 1
        self.headers = deque(maxlen=0)  # type: ignore[assignment]  # uvicorn appends trailers, which are to be dropped
        most = FREE_CHUNKS + self._body_bytes // LEAST_CHUNK_BYTES
        if self._chunks > most:
            self._fault = too_large("too_many_values", "the body", self._chunks, most, "chunks")
            raise self._fault

    def on_message_complete(self) -> None:
        """Note that a body has ended."""
        self._body_length = self._body_bytes = self._framing_bytes = self._chunks = 0
        mark_arrived(self.scope)  # type: ignore[arg-type]  # a dict as well
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or start it if it has arrived already."""
        self.server_state.total_requests += 1
        self.since = self.loop.time()
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self._held:
                self._shared.throttle.add(self._parse_held)

    def pause_writing(self) -> None:
        """Have it watched how fast the client reads."""
        super().pause_writing()
        self._unsent, self.since = self.unsent_bytes(), self.loop.time()
        self._shared.limit_unsent(self.since)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self.since = self.loop.time()
        super().resume_writing()

    @property
    def is_running(self) -> bool:
        """Whether a request has arrived whose response is not complete."""
        cycle = self.cycle
        return cycle is not None and not (cycle.more_body or cycle.response_complete)

    @property
    def is_unread(self) -> bool:
        """Whether the client has yet to read what was sent."""
        return self.flow.write_paused or self.transport.is_closing()

    def unsent_bytes(self) -> int:
        """Return the bytes of responses that are begun and that the system has not taken yet."""
        unsent: int = self.transport.get_write_buffer_size()
        if self.cycle is not None and not self.cycle.response_complete:
            unsent += self.cycle.expected_content_length
        return unsent

    def pace(self, now: float) -> float:
        """Return the bytes per second that the client reads or sends, which the server waits for.

        `DRIP_RATE` where the client has nothing to do; inf where it has begun less than `GRACE_SECONDS` ago.
        """
        if self.is_unread:
            moved = self._unsent - self.unsent_bytes()
        elif self._in_head or self.cycle is None:
            moved = 0
        elif self.cycle.response_complete:
            return DRIP_RATE
        else:
            moved = self._body_bytes
        seconds = now - self.since
        return moved / seconds if seconds >= GRACE_SECONDS else inf

    def check(self, now: float) -> None:
        """End the connection if its client has let the server wait for too long."""
        waited = now - self.since
        if self.is_unread:
            if waited >= SEND_TIMEOUT:
                self._check_reading(now)
        elif self._is_refused:
            if waited >= FINISH_SECONDS:
                self.transport.close()
        elif self._in_head:
            if waited >= HEAD_SECONDS:
                message = f"the request's head took longer than {HEAD_SECONDS:g} s to arrive"
                self._refuse(ServiceError(408, "head_timeout", message, {"timeout": HEAD_SECONDS}))
        elif self.cycle is None or self.cycle.response_complete:
            limit = HEAD_SECONDS if self.cycle is None else self.timeout_keep_alive
            if waited >= limit:
                self.transport.close()

    def _check_reading(self, now: float) -> None:
        unsent = self.unsent_bytes()
        if self._unsent - unsent < LEAST_RATE * SEND_TIMEOUT:
            self.cut_off(f"takes less than {LEAST_RATE} bytes per second of its response")
        self._unsent, self.since = unsent, now

    def make_last(self) -> None:
        """Close after the next response, which says so; an idle client is left to send the request for it.

        It might be sending one just now.
        """
        self._is_last = True
        self._announce_close()

    def cut_off(self, why: str) -> None:
        """Close at once, as the client does something."""
        _logger.info("a connection is closed: its client %s", why)
        self.abort()

    def abort(self) -> None:
        """Close at once; what is unsent is lost."""
        self.transport.abort()

    def _parse(self) -> None:
        """Parse what is held, no further than to the end of a request, and refuse what has no end."""
        data, place, parsed = self._held, 0, 0
        while parsed < TURN_BYTES and not (self.is_running or self._is_refused):
            left = self._body_length - self._body_bytes
            end = min(place + left, len(data)) if left > 0 else _end_of_part(data, place)
            if end == place:
                break
            if left <= 0:
                parsed += max(end - place, PART_BYTES)
            self._framing_bytes += end - place
            super().data_received(data[place:end])
            place = end
            if self._framing_bytes > HEAD_BYTES + CHUNK_FRAME_BYTES * self._chunks and not self._is_refused:
                self._refuse_excess()
        self._held = data[place:]
        if parsed >= TURN_BYTES and self._held and not (self.is_running or self._is_refused):
            self.transport.pause_reading()
            self._shared.throttle.add(self._parse_held)
        if self._is_last:
            self._announce_close()

    def _parse_held(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()
            self._parse()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request, a little later if it may wait behind those that run models.

        Earlier releases of uvicorn do not call this.
        """
        start = partial(super()._start_asgi_task, cycle, app)
        if is_urgent(cycle.scope["method"], cycle.scope["path"]):
            start()
        else:
            self._shared.throttle.add(start)

    def _announce_close(self) -> None:
        """Have a response say that it is the last, unless another request has arrived already."""
        if self.cycle is not None and not (self.cycle.response_started or self._held.strip(b"\r\n")):
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Respond to what cannot be parsed."""
        del msg
        self._refuse(self._fault or ServiceError(400, "invalid_http", "malformed HTTP/1.1 request"))

    def _refuse_excess(self) -> None:
        """Refuse more bytes that are no data than a client may send."""
        if self._in_head:
            message = f"the request's head has more than {HEAD_BYTES} bytes"
            self._refuse(ServiceError(431, "head_too_large", message, {"limit": HEAD_BYTES}))
        elif self.cycle is not None and self.cycle.more_body:
            message = f"chunk extensions and trailers have more than {HEAD_BYTES} bytes; send none"
            self._refuse(ServiceError(400, "invalid_http", message, {"limit": HEAD_BYTES}))
        else:
            self._is_refused = True
            self.transport.close()  # blank lines are no request that could be answered

    def _refuse(self, error: ServiceError) -> None:
        """Respond in place of the application, to which the client has left, and close when the client has.

        Until then what it sends is dropped: a connection that is closed with unread bytes is reset, and the client may
        lose the response.
        """
        cycle = self.cycle
        is_pending = cycle is not None and not cycle.response_complete
        request_id = choose_request_id(dict(self.scope["headers"]) if self._in_head or is_pending else {})
        fields = {"request_id": request_id, "status": error.status, "code": error.code}
        _logger.info("request refused", extra={FIELDS: fields})
        if not (is_pending and cycle.response_started):
            body = orjson.dumps(error.body())
            lines = (
                f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                "Connection: close",
                f"{REQUEST_ID_HEADER}: {request_id}",
            )
            self.transport.write("\r\n".join((*lines, "", "")).encode() + body)
        if is_pending:
            cycle.disconnected, cycle.waiting_for_100_continue = True, False
            cycle.message_event.set()
        self._is_refused, self.since = True, self.loop.time()
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self.transport.resume_reading()
        else:
            self.transport.close()


def _end_of_part(data: bytes, place: int) -> int:
    """Return how far to parse what is no body of known length: no further than to the empty line that ends it.

    Args:
        data: what has arrived, which may hold the beginning of that line.
        place: where to begin.
    """
    most = place + TURN_BYTES
    end = data.find(_END, place, most + len(_END))
    if end >= 0:
        return end + len(_END)
    return min(most, max(place, len(data.rstrip(b"\r\n"))))
