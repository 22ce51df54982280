"""uvicorn with a start and an end of our own.

The port is open before models are loaded. A signal fails readiness; accepted requests are answered, the exit code is 0.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
from contextlib import suppress
from functools import partial
from time import monotonic
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service.config.fitting import describe_fit
from service.config.machine import this_machine
from service.config.settings import Settings
from service.errors import ListenError, shutting_down
from service.lifecycle import Phase
from service.processes.slot import ABORT, READY, RETIRE, START_FAILED, Slot
from service.server.connection import Connection
from service.server.connections import Connections, open_connections
from service.server.listener import BACKLOG, listen, url_of
from service.server.tls import tls_options
from service.services import Services, services_of
from service.telemetry.status_line import show_status

_RESPONSE_SECONDS = 5
"""Seconds for writing responses after the drain, before connections are closed."""

UNREAD_SECONDS = 0.2
"""Seconds after a signal in which requests are accepted: some were sent before it, and are not read yet."""
HANDSHAKE_SECONDS = 10.0
"""Seconds that a client may take for the handshake of TLS: until then it counts as no connection."""
_PUBLISH_SECONDS = 5.0
"""Seconds between two times that one of several processes shows its gauges to all."""
_EXIT_SECONDS = 1.0
"""Seconds for threads to end after everything else, before the process ends without them."""

_logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """After the first signal, goes on until all accepted requests are answered or the drain time is over.

    For `Settings.drain_delay_seconds`, and a moment at least, it is only not ready any more: all requests are taken,
    and each response is the last of its connection. Then it drains: health endpoints are answered and new requests are
    refused. A second signal ends both.

    Args:
        config: uvicorn's own settings.
        services: its lifecycle is set to leaving or draining by the first signal; its scheduler's calls are cancelled
            when the drain time, `Settings.drain_seconds`, is over.
        url: where it is reached, for the log.
        connections: what its connections share; None for what the settings say.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        services: Services,
        url: str = "",
        connections: Connections | None = None,
    ) -> None:
        super().__init__(config)
        self.services = services
        self.lifecycle = services.lifecycle
        self._url = url
        self._connections = connections or open_connections(services.settings)
        self._signals: list[int] = []
        self._leave_until: float | None = None
        self._drain_until: float | None = None
        self._is_announced = False
        self._exit_timer: threading.Timer | None = None

    @property
    def exit_code(self) -> int:
        """The exit code of the process: 0, unless the server could not start."""
        return 0 if self.started and self.lifecycle.failure is None else START_FAILED

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal. The base class would raise it again at the end, and the exit code would not be 0."""
        del frame
        self._signals.append(sig)
        if len(self._signals) == 1 and self.lifecycle.phase is Phase.READY:
            self.lifecycle.leave()
        else:
            self.lifecycle.drain()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal comes. What uvicorn would log of start and end is logged here."""
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen. uvicorn itself would wait a minute for the handshake of TLS."""
        await super().startup([])
        loop, tls = asyncio.get_running_loop(), self.config.ssl
        timeout = None if tls is None else HANDSHAKE_SECONDS
        self.servers = [
            await loop.create_server(
                self._make_connection, sock=opened, ssl=tls, ssl_handshake_timeout=timeout, backlog=BACKLOG
            )
            for opened in sockets or []
        ]

    def _make_connection(self) -> asyncio.Protocol:
        state, made = self.lifespan.state, self.config.http_protocol_class
        protocol: asyncio.Protocol = made(config=self.config, server_state=self.server_state, app_state=state)  # type: ignore[call-arg]
        return protocol

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop listening; called ten times a second."""
        should_exit = await super().on_tick(counter)
        if self.lifecycle.failure is not None:
            _logger.error(self.lifecycle.failure)
            return True
        if self.lifecycle.phase is Phase.LEAVING:
            self._leave()
        elif self.lifecycle.phase is Phase.READY and not self._is_announced:
            self._is_announced = True
            self._report_ready()
        return self._drain() if self.lifecycle.phase is Phase.DRAINING else should_exit

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, close connections, and stop the workers; the process ends soon after, whatever they do."""
        self._exit_in(_RESPONSE_SECONDS + _EXIT_SECONDS)
        await super().shutdown(sockets)
        self._exit_in(_EXIT_SECONDS)

    def _exit_in(self, seconds: float) -> None:
        """End the process in that many seconds, even if threads are in native code that nothing can interrupt.

        The compiler is such code. Python waits for all threads before it ends a process, and a large model may take
        longer to compile than whoever sent the signal waits.
        """
        if self._exit_timer is not None:
            self._exit_timer.cancel()
        self._exit_timer = threading.Timer(seconds, self._exit)
        self._exit_timer.daemon = True
        self._exit_timer.start()

    def _exit(self) -> None:
        _logger.debug("threads are still at work; the process ends without them")
        for handler in logging.getLogger().handlers:
            handler.flush()
        os._exit(self.exit_code)

    def _report_ready(self) -> None:
        """Say that the models are loaded."""
        _logger.info("ready: running on %s (Ctrl-C stops it)", self._url)

    def _leave(self) -> None:
        """Wait for load balancers to turn away, then drain."""
        if self._leave_until is None:
            seconds = self.services.settings.drain_delay_seconds
            self._leave_until = monotonic() + max(seconds, UNREAD_SECONDS)
            self._connections.leave()
            if seconds:
                cause = signal.Signals(self._signals[0]).name
                _logger.info(
                    "stopping on %s: not ready any more, requests are taken for %g s", cause, seconds
                )
        if monotonic() >= self._leave_until:
            self.lifecycle.drain()

    def _drain(self) -> bool:
        """Return whether the drain is over."""
        if self._drain_until is None:
            self._begin_drain()
        if not self.lifecycle.accepted:
            return True
        if len(self._signals) > 1 or monotonic() >= (self._drain_until or 0):
            _logger.warning("drain timeout: aborting %d requests", self.lifecycle.accepted)
            self.services.scheduler.refuse_all(shutting_down())
            self.lifecycle.end_drain()
            return True
        return False

    def _begin_drain(self) -> None:
        self._drain_until = monotonic() + self.services.settings.drain_seconds
        cause = signal.Signals(self._signals[0]).name if self._signals else "request"
        doing = f"draining: {self.lifecycle.accepted} requests are in progress"
        if self.services.loaded is None:
            doing = f"aborting the loading of models ({self.services.progress.state})"
        show_status("")
        # one of several processes says it for all
        is_heard = self.services.process is None or self.lifecycle.accepted > 0
        _logger.log(logging.INFO if is_heard else logging.DEBUG, "stopping on %s, %s", cause, doing)
        self.services.stop_loading()


class WorkerServer(Server):
    """One of several processes.

    Args:
        config: uvicorn's own settings.
        services: as for `Server`.
        url: where it is reached, for the log.
        connections: what its connections share.
        channel: descriptor of the socket pair to the supervisor.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        services: Services,
        url: str,
        connections: Connections,
        channel: int,
    ) -> None:
        super().__init__(config, services, url, connections)
        self._channel = channel
        self._tasks: list[asyncio.Task[None]] = []
        self._replaced_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the first signal: a service manager signals all processes, the one that started this one among them."""
        if not self._signals:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen to the supervisor, and start."""
        self._reader, self._writer = await asyncio.open_connection(sock=socket.socket(fileno=self._channel))
        self._tasks.append(asyncio.create_task(self._obey()))
        loop = asyncio.get_running_loop()
        self.lifecycle.watch(lambda: loop.call_soon_threadsafe(self._abort_start))
        self._abort_start()  # the signal may have come before that
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop listening, as the base class does, or as all clients have left."""
        should_exit = await super().on_tick(counter)
        return should_exit or (
            self._replaced_at is not None and self._has_left(monotonic() - self._replaced_at)
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Publish no more, and end."""
        for task in self._tasks:
            task.cancel()
        await super().shutdown(sockets)

    def retire(self) -> None:
        """End once all clients have the last responses of their connections: another process has taken its place.

        Requests that come on connections of this process are still answered.
        """
        self._replaced_at = monotonic()
        for listening in self.servers:
            listening.close()
        for listener in self.services.listeners:
            listener.leave()
        self._connections.leave()

    def _has_left(self, seconds: float) -> bool:
        """Return whether this process has no more clients, or has waited long enough since it was replaced."""
        if seconds >= self.services.settings.drain_seconds:
            self.lifecycle.drain()
        others = any(listener.has_clients for listener in self.services.listeners)
        shake_hands = self.config.is_ssl and seconds < HANDSHAKE_SECONDS
        return not (others or shake_hands or self.server_state.connections or self.lifecycle.accepted)

    def _report_ready(self) -> None:
        """Begin to publish, which makes the process ready."""
        logging.getLogger().setLevel(self.services.settings.log_level.upper())
        self._tasks.append(asyncio.create_task(self._publish()))

    async def _obey(self) -> None:
        """Do what the supervisor says; end like on SIGTERM once it has ended."""
        with suppress(ConnectionError):
            while message := await self._reader.read(1):
                if message == RETIRE:
                    self.retire()
                elif message == ABORT:
                    super().handle_exit(signal.SIGTERM, None)
        _logger.error("the supervisor process has ended")
        self.handle_exit(signal.SIGTERM, None)

    async def _publish(self) -> None:
        """Publish the metrics of this process for the others every few seconds; the first time makes it ready."""
        metrics = self.services.telemetry.metrics
        is_ready = False
        while True:
            await asyncio.to_thread(lambda: metrics.publish(self.services.snapshot()))
            if not is_ready:
                is_ready = True
                self._writer.write(READY)
            await asyncio.sleep(_PUBLISH_SECONDS)

    def _abort_start(self) -> None:
        """Load no more once a signal has come: nothing else looks for signals before the application has started."""
        if not self.started and self.lifecycle.phase is Phase.DRAINING:
            self.services.stop_loading()


def run(app: FastAPI, settings: Settings, slot: Slot | None = None) -> int:
    """Serve an application until a signal ends it; returns the exit code.

    The port is open when this has hardly begun; until models are loaded, only health and metrics are answered. Of
    several processes, those that start while others serve accept connections once their models are loaded.

    Args:
        app: the application.
        settings: its settings.
        slot: what it has inherited as one of several processes; None where there is one.
    """
    try:
        sockets = listen(settings.host, settings.port) if slot is None else slot.open_sockets()
        if slot is None and settings.grpc_port:
            for probe in listen(settings.host, settings.grpc_port, "--grpc-port"):
                probe.close()  # gRPC itself would say less, in three lines
    except ListenError as error:
        _logger.error(str(error))  # noqa: TRY400  # it says all there is to say
        return START_FAILED
    for line in describe_fit(settings, this_machine()):
        _logger.info(line)
    services = services_of(app)
    services.opens_at_once = slot is None or slot.is_first
    connections = open_connections(settings)
    config = _configure(app, settings, connections)
    url = url_of(sockets[0], settings.host, is_secure=config.is_ssl)
    if slot is None:
        server = Server(config, services, url, connections)
    else:
        server = WorkerServer(config, services, url, connections, slot.channel)
    _logger.info("listening on %s, loading models from %s", url, settings.models)
    try:
        server.run(sockets)
    except SystemExit as ended:  # uvicorn raises this if it cannot start, after it has logged the reason
        return ended.code if isinstance(ended.code, int) else START_FAILED
    finally:
        for opened in sockets:
            opened.close()
    return server.exit_code


def _configure(app: FastAPI, settings: Settings, connections: Connections) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        http=partial(Connection, shared=connections),  # type: ignore[arg-type]  # only called
        access_log=False,
        server_header=False,
        proxy_headers=settings.otel != "off",  # only spans show what a proxy says of the connection
        ws="none",
        lifespan="on",
        backlog=BACKLOG,
        timeout_graceful_shutdown=_RESPONSE_SECONDS,
        **tls_options(settings),
    )
