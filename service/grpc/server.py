"""The gRPC server: its port, its services, and how it ends."""

import asyncio
import logging
import os
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import grpc

from service.config.settings import Settings
from service.errors import ListenError
from service.grpc.calls import PlainCalls
from service.grpc.front import Front
from service.grpc.health import Health
from service.grpc.inference import infer
from service.grpc.messages import HEALTH_SERVICE, INFERENCE_SERVICE
from service.grpc.options import CONNECTION_SECONDS, channel_options, tls_credentials
from service.grpc.streaming import PATH, Streams
from service.lifecycle import Phase
from service.processes.slot import Slot
from service.server.connections import max_connections

_LAST_SECONDS = 1.0
"""Seconds that calls have to end when the application ends: what it accepted has its response by then."""
_LEAVE_SECONDS = 1.2 * CONNECTION_SECONDS
"""Seconds in which all clients of a process that is replaced connect to others."""
_DESCRIPTORS = Path("/proc/self/fd")

_logger = logging.getLogger(__name__)


class GrpcServer:
    """Serves gRPC on the event loop that serves HTTP.

    Args:
        front: admits calls.
        slot: what the process has inherited as one of several; None where it is alone.

    Raises:
        SettingsError: gRPC cannot use the certificate's key.

    Attributes:
        port: where it listens, once it does.
    """

    def __init__(self, front: Front, slot: Slot | None = None) -> None:
        self._front = front
        self._settings = settings = front.services.settings
        self._shared_port = None if slot is None else slot.grpc_port
        self._credentials = tls_credentials(settings)
        self._health = Health(front)
        self._streams = Streams(front)
        self._server: grpc.aio.Server | None = None
        self._ending: asyncio.Task[None] | None = None
        self._draining = asyncio.Event()
        self.port = 0

    async def start(self) -> None:
        """Listen; models may be loaded later.

        Raises:
            ListenError: the address cannot be listened on.
        """
        settings = self._settings
        logging.getLogger("_cygrpc").setLevel(logging.INFO)  # it logs the event loop of each call
        self._server = grpc.aio.server(
            options=channel_options(settings, is_shared=self._shared_port is not None),
            maximum_concurrent_rpcs=max_connections(),
        )
        infer_path, front = f"/{INFERENCE_SERVICE}/ModelInfer", self._front
        inference = PlainCalls(front).handlers() | {
            "ModelInfer": front.unary(infer_path, partial(infer, front.services)),
            "ModelStreamInfer": front.stream(PATH, self._streams.run),
        }
        for service, methods in (INFERENCE_SERVICE, inference), (HEALTH_SERVICE, self._health.handlers()):
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        port = self._shared_port or settings.grpc_port or 0
        self.port = _bind(self._server, _address(settings, port), self._credentials)
        await self._server.start()
        notify = asyncio.get_running_loop().call_soon_threadsafe
        self._front.services.lifecycle.watch(partial(notify, self._phase_changed))
        _logger.info("gRPC is listening on %s", _address(settings, self.port))

    async def stop(self) -> None:
        """End what is left of the calls, and return when the port is closed."""
        if self._server is not None:
            await self._server.stop(_LAST_SECONDS)

    @property
    def has_clients(self) -> bool:
        """Whether calls are in progress after `leave`."""
        return self._ending is not None and not self._ending.done()

    def leave(self) -> None:
        """Leave new connections to the process that has taken this one's place; end when the old ones have ended."""
        self._health.leave()
        _close_listening_sockets(self.port)
        self._end(_LEAVE_SECONDS)

    def _phase_changed(self) -> None:
        """Notify watchers; when the server drains, have clients go to other servers."""
        if self._front.services.lifecycle.phase is not Phase.DRAINING:
            self._health.notify()
            return
        _close_listening_sockets(self.port)
        self._streams.drain()
        self._draining.set()
        self._end(0.0)

    def _end(self, seconds: float) -> None:
        """Close the port and have clients connect again, after some seconds or once the server drains."""
        if self._ending is None and self._server is not None:
            self._ending = asyncio.get_running_loop().create_task(self._stop_after(self._server, seconds))

    async def _stop_after(self, server: grpc.aio.Server, seconds: float) -> None:
        """Wait until clients have left, as gRPC aborts calls that arrive once it stops; then finish what has begun."""
        if seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._draining.wait(), seconds)
        stopping = asyncio.ensure_future(server.stop(self._settings.drain_seconds + _LAST_SECONDS))
        await asyncio.sleep(0)  # it begins, so that connections take no calls that watchers make after that
        self._health.notify()
        await stopping


def _close_listening_sockets(port: int) -> None:
    """Accept no more connections on a port, without what gRPC does to calls when it stops. Linux only."""
    for entry in _DESCRIPTORS.iterdir():
        with suppress(OSError):  # it may be closed meanwhile
            if entry.readlink().name.startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry.name))) as opened:
                    if _listens(opened, port):
                        opened.shutdown(socket.SHUT_RD)


def _listens(opened: socket.socket, port: int) -> bool:
    if opened.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return (
        bool(opened.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) and opened.getsockname()[1] == port
    )


def _bind(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    try:
        if credentials is None:
            return int(server.add_insecure_port(address))
        return int(server.add_secure_port(address, credentials))
    except RuntimeError as error:
        message = (
            f"{address}: gRPC cannot listen there; choose another port with --grpc-port, or a free one with 0"
        )
        raise ListenError(message) from error


def _address(settings: Settings, port: int) -> str:
    host = settings.host or "::"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
