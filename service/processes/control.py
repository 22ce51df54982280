"""The control channel between the supervisor and a worker process: a socket pair, one byte a message."""

import asyncio
import logging
import socket
from collections.abc import Callable

READY = b"r"
"""From the worker: it serves."""
RETIRE = b"t"
"""From the supervisor: another process has taken the worker's place."""
ABORT = b"a"
"""From the supervisor: abort the drain."""

_logger = logging.getLogger(__name__)


class Control(asyncio.Protocol):
    """The worker's end. Used on the event loop only.

    Args:
        descriptor: the inherited socket.
        retire: ends the worker once its clients have their responses.
        abort: aborts the drain.
        stop: ends the worker like SIGTERM; called when the supervisor has ended.
    """

    def __init__(
        self,
        descriptor: int,
        retire: Callable[[], object],
        abort: Callable[[], object],
        stop: Callable[[], object],
    ) -> None:
        self._descriptor = descriptor
        self._actions = {RETIRE[0]: retire, ABORT[0]: abort}
        self._stop = stop
        self._transport: asyncio.Transport | None = None
        self._is_ready = False

    async def connect(self) -> None:
        """Begin to receive."""
        opened = socket.socket(fileno=self._descriptor)
        opened.setblocking(False)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(lambda: self, sock=opened)

    def send_ready(self) -> None:
        """Report once that the worker serves."""
        if self._transport is not None and not self._is_ready:
            self._is_ready = True
            self._transport.write(READY)

    def data_received(self, data: bytes) -> None:
        """Act on each message."""
        for message in data:
            self._actions[message]()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the worker: the supervisor has ended."""
        del exc
        _logger.error("the supervisor process has ended")
        self._stop()
