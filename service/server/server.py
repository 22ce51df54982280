"""uvicorn with a graceful shutdown: readiness fails, accepted requests are answered, the exit code is 0."""

import logging
from time import monotonic
from types import FrameType

import uvicorn
from fastapi import FastAPI

from service.config.settings import Settings
from service.lifecycle import Lifecycle, Phase
from service.scheduling.dispatcher import Dispatcher
from service.scheduling.refusals import shutting_down
from service.server.connection import Connection
from service.server.tls import tls_options
from service.services import services_of

_ANSWER_SECONDS = 5
"""Seconds for writing answers after the drain, before connections are closed."""

_START_FAILED = 3
"""Exit code; the one that uvicorn itself uses."""

_logger = logging.getLogger(__name__)


class Server(uvicorn.Server):
    """After the first signal, goes on until all accepted requests are answered or the drain time is over.

    While it drains, health endpoints are answered and new requests are refused; a second signal ends the drain.

    Args:
        config: uvicorn's own settings.
        lifecycle: set to draining by the first signal; counts the accepted requests.
        dispatcher: cancels its calls when the drain time is over.
        drain_seconds: how long accepted requests may take.
    """

    def __init__(
        self, config: uvicorn.Config, lifecycle: Lifecycle, dispatcher: Dispatcher, drain_seconds: float
    ) -> None:
        super().__init__(config)
        self.lifecycle = lifecycle
        self.dispatcher = dispatcher
        self._drain_seconds = drain_seconds
        self._signals = 0
        self._drain_until: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal. The base class would raise it again at the end, and the exit code would not be 0."""
        del sig, frame
        self._signals += 1
        self.lifecycle.drain()

    async def on_tick(self, counter: int) -> bool:
        """Return whether to stop listening; called ten times a second."""
        should_exit = await super().on_tick(counter)
        if self.lifecycle.phase is not Phase.DRAINING:
            return should_exit
        if self._drain_until is None:
            self._drain_until = monotonic() + self._drain_seconds
            _logger.info("draining: %d requests are being answered", self.lifecycle.accepted)
        if not self.lifecycle.accepted:
            return True
        if self._signals > 1 or monotonic() >= self._drain_until:
            _logger.warning("drain is over: %d requests are given up", self.lifecycle.accepted)
            self.dispatcher.refuse_all(shutting_down())
            self.lifecycle.end_drain()
            return True
        return False


def run(app: FastAPI, settings: Settings) -> int:
    """Serve an application until a signal ends it; returns the exit code."""
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        http=Connection,
        access_log=False,
        server_header=False,
        proxy_headers=settings.otel,  # only spans show what a proxy says of the connection
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=_ANSWER_SECONDS,
        **tls_options(settings),
    )
    services = services_of(app)
    server = Server(config, services.lifecycle, services.dispatcher, settings.drain_seconds)
    try:
        server.run()
    except SystemExit as ended:  # uvicorn raises this if it cannot start, after it has logged the reason
        return ended.code if isinstance(ended.code, int) else _START_FAILED
    return 0 if server.started else _START_FAILED
