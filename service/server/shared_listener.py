"""Accepts connections from a socket that other processes accept from as well."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

FULL_SECONDS = 1.0
"""How long a process that cannot accept connections tries no more."""
HANDSHAKE_SECONDS = 10.0
"""How long a client may take to agree on TLS: until then it takes descriptors, and holds up a restart."""

_logger = logging.getLogger(__name__)


class SharedListener:
    """Takes one new connection in each iteration of the event loop.

    An event loop's own server accepts all that wait: of clients that connect together, as pools of connections do, the
    process that wakes up first would get all. It has the methods of such a server that uvicorn calls.

    Args:
        listening: the socket, not blocking.
        make: returns the protocol of a new connection.
        tls: for HTTPS.
    """

    def __init__(
        self, listening: socket.socket, make: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        self._socket = listening
        self._make = make
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self._listen()

    def close(self) -> None:
        """Accept no more connections."""
        self._loop.remove_reader(self._socket.fileno())
        if self._pause is not None:
            self._pause.cancel()

    @property
    def is_beginning(self) -> bool:
        """Whether connections were accepted that have no protocol yet: those of TLS while they shake hands."""
        return bool(self._beginning)

    async def wait_closed(self) -> None:
        """Return at once: connections are waited for by the server itself."""

    def _listen(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another process was faster
            return
        except OSError as error:  # no descriptors are left: the client waits for the next attempt
            _logger.warning("a connection cannot be accepted: %s", error)
            self._loop.remove_reader(self._socket.fileno())
            self._pause = self._loop.call_later(FULL_SECONDS, self._listen)
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._connect(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                self._make,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_SECONDS,
            )
        except (OSError, TimeoutError) as error:  # the client has left, or speaks no TLS
            _logger.debug("a connection did not come about: %s", error)
            connection.close()
