"""A client's connection: uvicorn's, with limits on a request's head, and JSON errors for bytes that are not HTTP.

The HTTP protocol class is not part of uvicorn's public interface: its names are used in this module and nowhere else,
and pyproject.toml sets an upper bound on uvicorn's version.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from service.config.limits import too_large
from service.context import REQUEST_ID_HEADER, address_of, choose_request_id, mark_arrived
from service.errors import ServiceError
from service.http.paths import is_urgent
from service.log_context import FIELDS
from service.server.connection_limit import Activity, Use, choose_closed
from service.server.connection_policy import ConnectionPolicy
from service.server.message_head import authority_of, check_head
from service.server.read_flow import ReadFlow
from service.server.reader import PacketReader
from service.server.transport import CoalescingTransport

SLICE_LINES = 32
"""Lines of a packet, two of each request at least, that are parsed at once: most packets have one request."""
HEAD_BYTES = 64 << 10
"""Maximum bytes of a request line and its headers, counted from the second packet that they arrive in; of blank lines
before a request; and of a body's chunk extensions and trailers."""
CHUNK_FRAME_BYTES = 24
"""Bytes that the size of a chunk and the line ends around it may have, beside that."""
HEAD_SECONDS = 20.0
"""Seconds that a client has to send them."""
DROPPED_BYTES = 4 << 20
"""Maximum bytes that a client may send on after it was refused, and still get the response for sure."""
MAX_AHEAD = 8
"""Requests that wait for the responses before theirs: when so many are parsed, no more are."""
SLICE_BYTES, AHEAD_SLICE_BYTES = 1 << 9, 1 << 7
"""Bytes that are parsed at a time, before it is known whose they are: at first, and while requests wait."""
FREE_CHUNKS, LEAST_CHUNK_BYTES = 10_000, 64
"""A body may have so many chunks, and one more for each of so many bytes: tiny ones take long to parse."""
READ_AHEAD_BYTES = 1 << 15
"""Bytes of a body that are read before the application asks for them; the packet that they arrive in may have more."""

_logger = logging.getLogger(__name__)


class Connection(HttpToolsProtocol):
    """Speaks HTTP/1.1 with one client."""

    def __init__(self, *arguments: Any, policy: ConnectionPolicy, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._policy = policy
        self._reader = PacketReader(self)
        self._in_head = False
        self._answered: RequestResponseCycle | None = None
        self._begun_at = 0.0
        self._other_bytes = self._body_bytes = self._chunks = 0
        self._excess: ServiceError | None = None
        self._is_last = False
        self._deadline: float | None = None  # for a request to begin, or for its head to end
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the base class
        """Wait for a request."""
        coalescing = CoalescingTransport(transport, self.loop, self._linger)
        super().connection_made(coalescing)  # type: ignore[arg-type]  # it delegates all that it does not define
        self.flow = self._read_flow = ReadFlow(self.transport)
        self._await_head(HEAD_SECONDS)
        transport.set_protocol(self._reader)
        if self._policy.is_leaving:
            self.make_last()
        if len(self.connections) > self._policy.most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._policy.unsent.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse a packet, and refuse a head that does not end."""
        if self.transport.is_closing():  # refused, or TLS, which may deliver data after it has been closed
            self._other_bytes += len(data)
            if self._other_bytes > DROPPED_BYTES:
                self.abort()
            return
        if self._read_flow.held:
            self._read_flow.hold(data)
            return
        self._other_bytes += len(data)
        if len(data) <= SLICE_BYTES or (not self.pipeline and data.count(b"\n") <= SLICE_LINES):
            super().data_received(data)
        else:
            self._parse_in_slices(data)
        if self._in_head and self._deadline is None:
            self._await_head(HEAD_SECONDS)  # most heads arrive in one packet and need no timer
        if (
            self._other_bytes > HEAD_BYTES + CHUNK_FRAME_BYTES * self._chunks
            and not self.transport.is_closing()
        ):
            self._refuse_excess()

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        super().on_message_begin()
        self._in_head = True
        self._other_bytes = self._chunks = 0
        # blank lines before it are no request: a client that sends nothing else is idle
        self._deadline = None

    def on_headers_complete(self) -> None:
        """Note that a head has ended.

        Raises:
            ServiceError: RFC 9112 has it refused; the parser ends with it.
        """
        try:
            check_head(self.parser.get_http_version(), self.headers)
            if not self.url.startswith(b"/"):
                self._replace_host(authority_of(self.url))
        except ServiceError as error:
            self._excess = error
            raise
        self._in_head = False
        self._other_bytes = self._body_bytes = 0
        self._deadline, self._begun_at = None, self.loop.time()
        super().on_headers_complete()

    def _replace_host(self, authority: bytes | None) -> None:
        """Replace `Host` by the authority of an absolute-form target (RFC 9112, 3.2.2), which is checked as it is."""
        if authority is not None:
            self.headers[:] = [field for field in self.headers if field[0] != b"host"]
            self.headers.append((b"host", authority))

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body, and stop reading when the application does not keep up."""
        super().on_body(body)
        self._body_bytes += len(body)
        self._other_bytes -= len(body)
        if self.cycle.response_complete:
            self._await_head(self.timeout_keep_alive)  # nobody reads it, but it is to arrive
        elif len(self.cycle.body) >= READ_AHEAD_BYTES:
            self.flow.pause_reading()

    def on_chunk_header(self) -> None:
        """Count a chunk of a body.

        Raises:
            ServiceError: there are too many for so few bytes; the parser ends with it.
        """
        self._chunks += 1
        self.headers = deque(maxlen=0)  # type: ignore[assignment]  # uvicorn appends trailers, which are to be dropped
        most = FREE_CHUNKS + self._body_bytes // LEAST_CHUNK_BYTES
        if self._chunks > most:
            self._excess = too_large("too_many_values", "the body", self._chunks, most, "chunks")
            raise self._excess

    def on_message_complete(self) -> None:
        """Note that a body has ended."""
        self._other_bytes = self._chunks = 0
        mark_arrived(self.scope)  # type: ignore[arg-type]  # a dict as well
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request, or wait for it, and parse those that were sent ahead."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._policy.throttle.add(partial(self._start, *self.pipeline.pop()))
        elif not self._in_head:
            self._await_head(self.timeout_keep_alive)
        if self._read_flow.held and len(self.pipeline) < MAX_AHEAD:
            self._policy.throttle.add(self._parse_held)

    def pause_writing(self) -> None:
        """Have it watched how fast the client reads."""
        super().pause_writing()
        self._policy.unsent.watch(self)

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._policy.unsent.note(self)
        super().resume_writing()

    def unsent_bytes(self) -> int:
        """Return the bytes of responses that are begun and that the system has not taken yet."""
        unsent: int = self.transport.get_write_buffer_size()
        if self._answered is not None and not self._answered.response_complete:
            unsent += self._answered.expected_content_length
        return unsent

    def make_last(self) -> None:
        """Close after the next response, which says so; an idle client is left to send the request for it.

        It might be sending one just now.
        """
        self._is_last = True
        if self._answered is not None and not self._answered.response_started:
            self._announce_close(self._answered)

    def abort(self) -> None:
        """Close at once; what is unsent is lost."""
        self.transport.abort()

    def activity(self, now: float) -> Activity:
        """Return what the client is doing."""
        address = address_of(self.client)
        if self.flow.write_paused:
            return Activity(Use.RESPONSE, *self._policy.unsent.rate(self, now), address)
        if self.cycle is not None and not self.cycle.response_complete:
            if self.pipeline or not self.cycle.more_body:
                return Activity(Use.RUN, now, address=address)
            rate = self._body_bytes / max(now - self._begun_at, 1.0)
            return Activity(Use.BODY, self._begun_at, rate, address)
        is_idle = self.cycle is not None and not self._in_head
        limit = self.timeout_keep_alive if is_idle else HEAD_SECONDS
        since = now if self._deadline is None else self._deadline - limit
        return Activity(Use.IDLE if is_idle else Use.HEAD, since, address=address)

    def _make_room(self) -> None:
        """Close connections that are of less use than this one, which comes too many; or this one."""
        now = self.loop.time()
        connections = cast("set[Connection]", self.connections)
        activities = {connection: connection.activity(now) for connection in connections}
        for connection in choose_closed(activities, self, self._policy.most, now):
            connection.abort()

    def _await_head(self, seconds: float) -> None:
        """Wait so long for a request, or for all of its head. A timer goes on, unless it would end too late."""
        self._deadline = self.loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self.loop.call_at(self._deadline, self._end_wait)

    def _end_wait(self) -> None:
        """Close a connection whose client has let the deadline pass."""
        self._timer = None
        if self._deadline is None:
            return  # a request has come: the end of its response starts another timer
        if self._deadline > self.loop.time():
            self._timer = self.loop.call_at(self._deadline, self._end_wait)
        elif self.cycle is not None and not self.cycle.response_complete:
            self._await_head(HEAD_SECONDS)  # the request before this one is still being answered
        elif self._in_head:
            message = f"the request's head took longer than {HEAD_SECONDS:g} s to arrive"
            self._refuse(ServiceError(408, "head_timeout", message, {"timeout": HEAD_SECONDS}))
        else:
            self.transport.close()

    def _parse_in_slices(self, data: bytes) -> None:
        """Parse a packet, and hold what is left of it once enough requests wait for their turn."""
        place = 0
        while place < len(data) and not self.transport.is_closing():
            if len(self.pipeline) >= MAX_AHEAD:
                self._read_flow.hold(data[place:])
                return
            size = max(self._body_left(), AHEAD_SLICE_BYTES if self.pipeline else SLICE_BYTES)
            super().data_received(data[place : place + size])
            place += size

    def _body_left(self) -> int:
        """Return how many of the next bytes surely are of the body that is being received."""
        if self._in_head or self.cycle is None or not self.cycle.more_body:
            return 0
        for name, value in self.cycle.scope["headers"]:
            if name == b"content-length":
                return int(value) - self._body_bytes
        return -self._body_bytes

    def _parse_held(self) -> None:
        if self.transport.is_closing():
            return
        self.data_received(self._read_flow.release())
        if not self.pipeline:
            self.flow.resume_reading()

    def _linger(self) -> None:
        self._policy.unsent.watch(self)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Start a request that came when none was being answered; earlier releases of uvicorn do not call this."""
        if is_urgent(cycle.scope["method"], cycle.scope["path"]):
            self._start(cycle, app)
        else:  # it may wait behind those that run models
            self._policy.throttle.add(partial(self._start, cycle, app))

    def _announce_close(self, cycle: RequestResponseCycle) -> None:
        """Have a response say that it is the last, unless requests have come already that are to follow it."""
        if not self.pipeline and not self._read_flow.held:
            cycle.keep_alive = False

    def _start(self, cycle: RequestResponseCycle, app: Any) -> None:
        task = self.loop.create_task(self._respond(cycle, app))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    async def _respond(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Run the application, once all of the packet has been parsed that the head arrived in."""
        self._answered = cycle
        if self._is_last:
            self._announce_close(cycle)
        await cycle.run_asgi(app)

    def send_400_response(self, msg: str) -> None:
        """Respond to what cannot be parsed."""
        del msg
        unsound = ServiceError(400, "invalid_http", "malformed HTTP/1.1 request")
        self._refuse(unsound if self._excess is None else self._excess)

    def _head(self) -> Iterable[tuple[bytes, bytes]]:
        """Return the headers of the request that arrives, not its trailers."""
        return self.scope["headers"] if self.scope else []

    def _refuse_excess(self) -> None:
        """Refuse more bytes that are no data than a client may send."""
        if self._in_head:
            message = f"the request's head has more than {HEAD_BYTES} bytes"
            self._refuse(ServiceError(431, "head_too_large", message, {"limit": HEAD_BYTES}))
        elif self.cycle is not None and self.cycle.more_body:
            message = f"chunk extensions and trailers have more than {HEAD_BYTES} bytes; send none"
            self._refuse(ServiceError(400, "invalid_http", message, {"limit": HEAD_BYTES}))
        else:
            self.transport.close()  # blank lines are no request that could be answered

    def _refuse(self, error: ServiceError) -> None:
        """Respond in place of the application, which never sees the request, and close."""
        answered = self.cycle is None or self.cycle.response_complete
        request_id = choose_request_id(dict(self._head()) if self._in_head or not answered else {})
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
        cast(CoalescingTransport, self.transport).finish()
