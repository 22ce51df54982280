"""The gRPC server: its port, its services, and how it ends."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from service.config.settings import Settings
from service.errors import ListenError
from service.grpc.calls import LOG_PATH, TRACE_PATH, PlainCalls, plain_response
from service.grpc.front import Front, Method, Rpc, UnaryHandler
from service.grpc.health import Health
from service.grpc.inference import infer
from service.grpc.messages import HEALTH_SERVICE, INFERENCE_SERVICE
from service.grpc.options import CONNECTION_SECONDS, channel_options, tls_credentials
from service.grpc.streaming import Streams
from service.lifecycle import Phase
from service.processes.slot import Slot
from service.server.connection_policy import max_connections

_LAST_SECONDS = 1.0
"""Seconds that calls have to end when the application ends: what it accepted has its response by then."""
_LEAVE_SECONDS = 1.2 * CONNECTION_SECONDS
"""Seconds in which all clients of a process that is replaced connect to others."""
_DESCRIPTORS = Path("/proc/self/fd")

_SHARED_MEMORY = tuple(
    f"{kind}SharedMemory{call}"
    for kind in ("System", "Cuda")
    for call in ("Status", "Register", "Unregister")
)
_INFER_PATH = "/v2/models/M/infer"
STREAM = Method(f"/{INFERENCE_SERVICE}/ModelStreamInfer", "POST", _INFER_PATH)
_Handlers = dict[str, grpc.RpcMethodHandler]
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
        self._health = Health(front.services)
        self._streams = Streams(front, STREAM)
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
        inference = _inference_handlers(self._front)
        inference["ModelStreamInfer"] = _stream(self._front, self._streams)
        handlers = inference, _health_handlers(self._front, self._health)
        for service, methods in zip((INFERENCE_SERVICE, HEALTH_SERVICE), handlers, strict=True):
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
        self._health.notify()
        if self._front.services.lifecycle.phase is Phase.DRAINING:
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
        await server.stop(self._settings.drain_seconds + _LAST_SECONDS)


def _close_listening_sockets(port: int) -> None:
    """Accept no more connections on a port, without what gRPC does to calls when it stops. Linux only."""
    for entry in _DESCRIPTORS.iterdir():
        with (
            suppress(OSError),
            socket.socket(fileno=os.dup(int(entry.name))) as opened,
        ):  # it may be no socket
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


def _inference_handlers(front: Front) -> _Handlers:
    calls = PlainCalls(front)
    plain: dict[str, tuple[Callable[..., Any], str, str]] = {
        "ServerLive": (calls.server_live, "GET", "/v2/health/live"),
        "ServerReady": (calls.server_ready, "GET", "/v2/health/ready"),
        "ModelReady": (calls.model_ready, "GET", "/v2/models/M/ready"),
        "ServerMetadata": (calls.server_metadata, "GET", "/v2"),
        "ModelMetadata": (calls.model_metadata, "GET", "/v2/models/M"),
        "ModelConfig": (calls.model_config, "GET", "/v2/models/M/config"),
        "ModelStatistics": (calls.model_statistics, "GET", "/v2/models/stats"),
        "RepositoryIndex": (calls.repository_index, "POST", "/v2/repository/index"),
        "RepositoryModelLoad": (calls.repository_model_load, "POST", "/v2/repository/models/M/load"),
        "RepositoryModelUnload": (calls.repository_model_unload, "POST", "/v2/repository/models/M/unload"),
        "TraceSetting": (calls.trace_setting, "GET", TRACE_PATH),
        "LogSettings": (calls.log_settings, "GET", LOG_PATH),
    }
    handlers = {
        name: _unary(
            front,
            Method(f"/{INFERENCE_SERVICE}/{name}", verb, path, "/health/" in path),
            plain_response(name, make),
        )
        for name, (make, verb, path) in plain.items()
    }
    for name in _SHARED_MEMORY:
        handlers[name] = _unary(
            front, Method(f"/{INFERENCE_SERVICE}/{name}", "GET", "/v2"), calls.shared_memory
        )
    model_infer = Method(f"/{INFERENCE_SERVICE}/ModelInfer", "POST", _INFER_PATH)
    return handlers | {"ModelInfer": _unary(front, model_infer, partial(infer, front.services))}


def _stream(front: Front, streams: Streams) -> grpc.RpcMethodHandler:
    async def exchange(_requests: object, rpc: Rpc) -> None:
        await front.run(STREAM, streams.run, rpc)

    return grpc.stream_stream_rpc_method_handler(exchange)


def _health_handlers(front: Front, health: Health) -> _Handlers:
    check = Method(f"/{HEALTH_SERVICE}/Check", "GET", "/livez", is_polled=True)
    watch = Method(f"/{HEALTH_SERVICE}/Watch", "GET", "/livez", is_polled=True)

    async def send(_requests: object, rpc: Rpc) -> None:
        await rpc.write(await front.handle(watch, health.watch, rpc))

    return {
        "Check": _unary(front, check, health.check),
        "Watch": grpc.stream_stream_rpc_method_handler(send),
    }


def _unary(front: Front, method: Method, response: UnaryHandler) -> grpc.RpcMethodHandler:
    """Return the handler of a call with one message each way.

    To gRPC it is one that takes a stream, so that messages are read when the call has been admitted, and not before.
    """
    handle = partial(front.handle, method, response)

    async def respond(_requests: object, rpc: Rpc) -> bytes:
        return await handle(rpc)

    return grpc.stream_unary_rpc_method_handler(respond)
