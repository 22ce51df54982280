"""`grpc.health.v1`: whether requests are accepted, for whatever supervises the process or balances calls."""

import asyncio
from functools import partial

import grpc

from service.errors import ServiceError, shutting_down
from service.grpc.front import Front, Incoming
from service.grpc.messages import HEALTH_SERVICE, INFERENCE_SERVICE, message_class, parse
from service.lifecycle import Phase

_Request = message_class("grpc.health.v1.HealthCheckRequest")
_Response = message_class("grpc.health.v1.HealthCheckResponse")
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_KNOWN = ("", INFERENCE_SERVICE, HEALTH_SERVICE)
"""Services that may be asked for; empty for the whole server."""
_MAX_BYTES = 1 << 12
"""Maximum bytes of a message: whoever may do nothing else may ask for health, and watch for as long as it likes."""


class Health:
    """Serves the calls of the health service. Used on the event loop only.

    Args:
        front: admits calls.
    """

    def __init__(self, front: Front) -> None:
        self._front = front
        self._lifecycle = front.services.lifecycle
        self._changed = asyncio.Event()
        self._has_left = False

    def handlers(self) -> dict[str, grpc.RpcMethodHandler]:
        """Return what serves each call, by its name."""
        watch = partial(self._front.with_message, self._watch)
        return {
            "Check": self._front.unary(f"/{HEALTH_SERVICE}/Check", self._check, is_polled=True),
            "Watch": self._front.stream(f"/{HEALTH_SERVICE}/Watch", watch, is_polled=True),
        }

    def leave(self) -> None:
        """Have all who watch ask again, on connections to other processes."""
        self._has_left = True
        self.notify()

    def notify(self) -> None:
        """Notify all watchers that the server's phase may have changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _check(self, incoming: Incoming) -> bytes:
        """Return whether a service accepts requests.

        Raises:
            ServiceError: 400 `invalid_message`, 404 `service_not_found`, 413 `body_too_large`.
        """
        service = str(parse(_Request, incoming.data, _MAX_BYTES).service)
        if service not in _KNOWN:
            message = f"the server has no service {service[:80]!r}; it has {', '.join(_KNOWN[1:])}"
            raise ServiceError(404, "service_not_found", message, {"known": list(_KNOWN[1:])})
        return self._status(service)

    async def _watch(self, incoming: Incoming) -> bytes:
        """Send whether a service accepts requests, now and whenever that changes, until the server drains.

        Raises:
            ServiceError: 400 `invalid_message`, 413 `body_too_large`, 503 `shutting_down` where another process takes
                the place of this one.
        """
        service = str(parse(_Request, incoming.data, _MAX_BYTES).service)
        sent = None
        while True:
            changed, status = self._changed, self._status(service)
            is_draining = self._lifecycle.phase is Phase.DRAINING
            if self._has_left and not is_draining:
                raise shutting_down()
            if status != sent:
                await incoming.rpc.write(status)
                sent = status
            if is_draining:
                return b""
            await changed.wait()

    def _status(self, service: str) -> bytes:
        status = _SERVICE_UNKNOWN
        if service in _KNOWN:
            status = _SERVING if self._lifecycle.phase is Phase.READY else _NOT_SERVING
        written: bytes = _Response(status=status).SerializeToString()
        return written
