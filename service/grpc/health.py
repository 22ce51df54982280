"""`grpc.health.v1`: whether requests are accepted, for whatever supervises the process or balances calls."""

import asyncio

from service.errors import ServiceError, shutting_down
from service.grpc.front import Incoming
from service.grpc.messages import HEALTH_SERVICE, INFERENCE_SERVICE, message_class, parse
from service.lifecycle import Phase
from service.services import Services

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
        services: the parts of the server.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._changed: set[asyncio.Event] = set()
        self._has_left = False

    def leave(self) -> None:
        """Have all who watch ask again, on connections to other processes."""
        self._has_left = True
        self.notify()

    def notify(self) -> None:
        """Notify all watchers that the server's phase may have changed."""
        for event in self._changed:
            event.set()

    async def check(self, incoming: Incoming) -> bytes:
        """Return whether a service accepts requests.

        Raises:
            ServiceError: 400 `invalid_message`, 404 `service_not_found`, 413 `body_too_large`.
        """
        service = str(parse(_Request, incoming.data, _MAX_BYTES).service)
        if service not in _KNOWN:
            message = f"the server has no service {service[:80]!r}; it has {', '.join(_KNOWN[1:])}"
            raise ServiceError(404, "service_not_found", message, {"known": list(_KNOWN[1:])})
        return self._status(service)

    async def watch(self, incoming: Incoming) -> bytes:
        """Send whether a service accepts requests, now and whenever that changes; return the last response.

        The server's shutdown ends the call.

        Raises:
            ServiceError: 400 `invalid_message`, 413 `body_too_large`, 503 `shutting_down` where another process takes
                the place of this one.
        """
        service = str(parse(_Request, incoming.data, _MAX_BYTES).service)
        event = asyncio.Event()
        self._changed.add(event)
        sent = None
        try:
            while True:
                event.clear()
                status = self._status(service)
                if self._services.lifecycle.phase is Phase.DRAINING:
                    return status
                if self._has_left:
                    raise shutting_down()
                if status != sent:
                    await incoming.rpc.write(status)
                    sent = status
                await event.wait()
        finally:
            self._changed.discard(event)

    def _status(self, service: str) -> bytes:
        status = _SERVICE_UNKNOWN
        if service in _KNOWN:
            try:
                self._services.check_ready()
                status = _SERVING
            except ServiceError:
                status = _NOT_SERVING
        written: bytes = _Response(status=status).SerializeToString()
        return written
