"""One request that a connection answers itself."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from time import perf_counter_ns
from typing import Protocol

from starlette.requests import ClientDisconnect

from service.context import REQUEST_ID_HEADER, RequestContext
from service.errors import ServiceError
from service.http.body import late_body
from service.http.body_budget import Reservation
from service.http.error_handlers import error_response, internal_error
from service.log_context import request_id
from service.scheduling.call import Call
from service.scheduling.intake import Answer, Bytes, Intake
from service.scheduling.pending import PendingCall
from service.services import Services
from service.telemetry.http_accounts import CLIENT_LEFT
from service.v2.errors import as_v2, speaks_v2

_OK, _FAILED = 200, 500
_ID_HEADER = REQUEST_ID_HEADER.lower().encode()
_logger = logging.getLogger(__name__)


class Line(Protocol):
    """The connection that a request came by."""

    def send(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: Sequence[Bytes]) -> None:
        """Send an answer, its body in pieces."""

    def answered(self, request: "DirectRequest") -> None:
        """Go on after a request, or close where it is the last."""


class DirectRequest:
    """A request from its head to the end of its answer. Used on the event loop only.

    To the connection's base class it is a request like those that the application answers.

    Args:
        services: the server's parts.
        line: where it came from.
        context: what is known of it.
        route: template of the route that it takes.
        intake: what its head asks for.
        length: how many bytes its body has.
        reservation: the room for them, reserved.

    Attributes:
        is_reading: whether its body has not come to the end.
        keep_alive: whether the connection goes on after it.
        disconnected: whether the client has left.
        response_started: whether any of the answer has been sent.
        response_complete: whether nothing more is to be sent.
        message_event: what is told when something happens to the connection.
    """

    def __init__(
        self,
        services: Services,
        line: Line,
        context: RequestContext,
        route: str,
        intake: Intake,
        length: int,
        reservation: Reservation,
    ) -> None:
        self._services = services
        self._line = line
        self._context = context
        self._route = route
        self._intake = intake
        self._reservation = reservation
        self._body = bytearray(intake.lead + length)
        self._room = memoryview(self._body)[intake.lead :]
        self._body_timer: asyncio.TimerHandle | None = None
        self._pending: PendingCall[Answer] | None = None
        self._started_ns = perf_counter_ns()
        self.is_reading = True
        self.keep_alive = True
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.message_event = _Nobody()
        services.lifecycle.enter()

    @property
    def missing(self) -> int:
        """How many bytes of the body have not come yet."""
        return len(self._room)

    @property
    def room(self) -> memoryview:
        """Where they are to lie."""
        return self._room

    def add(self, data: bytes) -> None:
        """Take a piece of the body."""
        self._room[: len(data)] = data
        self.fill(len(data))

    def fill(self, count: int) -> None:
        """Note that bytes have been put to their place."""
        self._room = self._room[count:]

    def await_rest(self) -> None:
        """Give the client its time to send the rest of the body."""
        if self._body_timer is None:
            timeout = self._services.settings.timeout
            self._body_timer = asyncio.get_running_loop().call_later(timeout, self._body_is_late)

    def complete(self) -> None:
        """Have the model run: the body is whole."""
        received = perf_counter_ns()
        self._end_reading()
        token = request_id.set(self._context.request_id)
        try:
            call = self._make_call(received)
            self._pending = self._services.dispatcher.begin(call, self._end)
        except Exception as error:  # whatever a request makes it raise, the connection lives on
            self._end(None, error)
        finally:
            request_id.reset(token)

    def refuse(self, error: ServiceError) -> None:
        """Give it up if its body has not come yet."""
        if self.is_reading:
            self.keep_alive = False  # the rest of the body must not be taken for the next request
            self._end_early(error)

    def leave(self) -> None:
        """Give it up: the client has left."""
        self.disconnected = True
        if self._pending is not None:
            self._pending.give_up("the client left", ClientDisconnect())
        elif not self.response_complete:
            self._end_early(ClientDisconnect())

    def _make_call(self, received_ns: int) -> Call[Answer]:
        body, self._body = self._body, bytearray()  # the call drops it when it is decoded
        try:
            return self._intake.call(body, received_ns)
        except ServiceError as error:
            self._note_refusal(error)
            raise

    def _end_reading(self) -> None:
        self.is_reading = False
        self._room = memoryview(b"")
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_is_late(self) -> None:
        self.refuse(late_body(self._services.settings.timeout))

    def _end_early(self, error: ServiceError | ClientDisconnect) -> None:
        """End it before its body has come."""
        self._end_reading()
        self._body = bytearray()  # its room is given back before the connection is gone
        self._note_refusal(error)
        token = request_id.set(self._context.request_id)
        try:
            self._end(None, error)
        finally:
            request_id.reset(token)

    def _note_refusal(self, error: ServiceError | ClientDisconnect) -> None:
        intake, began = self._intake, self._started_ns
        self._services.dispatcher.note_refusal(intake.model, intake.surface, intake.request_id, began, error)

    def _end(self, answer: Answer | None, error: BaseException | None) -> None:
        """Send the answer, or tell why there is none, and close the books whatever happens."""
        if self.response_complete:
            return
        status = _FAILED
        try:
            status = self._answer(answer, error)
        except Exception as fault:  # whatever cannot be worded or sent, the connection lives on
            if self.response_started:
                _logger.exception("an answer could not be sent")
                self.keep_alive = False  # nobody knows how much of it has been
            else:
                self._refuse(fault)
        finally:
            self._close(status)

    def _answer(self, answer: Answer | None, error: BaseException | None) -> int:
        """Send the answer, or tell why there is none; returns the status."""
        if answer is not None:
            self._send(_OK, _headers(answer), answer.pieces)
            return _OK
        return CLIENT_LEFT if isinstance(error, ClientDisconnect) else self._refuse(error)

    def _refuse(self, error: BaseException | None) -> int:
        """Send an error; returns its status."""
        if not isinstance(error, ServiceError):
            _logger.error("unhandled error", exc_info=error)
            error = internal_error(self._context.request_id)
        response = error_response(as_v2(error) if speaks_v2(self._route) else error)
        if error.headers.get("Connection") == "close":
            self.keep_alive = False
        headers = [(name, value) for name, value in response.raw_headers if name != b"connection"]
        self._send(response.status_code, headers, (response.body,))
        return response.status_code

    def _send(self, status: int, headers: list[tuple[bytes, bytes]], body: Sequence[Bytes]) -> None:
        self.response_started = True
        headers.append((_ID_HEADER, self._context.request_id.encode()))
        if not self.keep_alive:
            headers.append((b"connection", b"close"))
        self._line.send(status, headers, body)

    def _close(self, status: int) -> None:
        self.response_complete = True
        self._pending = None  # it knows this request: together they would outlive the answer
        self._reservation.release()
        services = self._services
        services.lifecycle.leave()
        services.telemetry.http_accounts.close(self._context, "POST", self._route, self._route, status)
        self._line.answered(self)


class _Nobody:
    """Waits for no message."""

    def set(self) -> None:
        """Tell nobody."""


def _headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    headers = [(name.lower().encode(), value.encode()) for name, value in answer.headers.items()]
    headers.append((b"content-length", b"%d" % answer.length))
    headers.append((b"content-type", answer.media_type.encode()))
    return headers
