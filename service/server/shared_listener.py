"""Accepts connections from a socket that other processes accept from as well."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from service.processes.connection_shares import ConnectionShares

PAUSE_SECONDS = 0.001
"""How long a process leaves connections to those that have fewer: they need a tenth of it to wake up."""
FULL_SECONDS = 1.0
"""How long a process that cannot accept connections tries no more."""
HANDSHAKE_SECONDS = 10.0
"""How long a client may take to agree on TLS: until then it takes descriptors, and holds up a restart."""
MAX_AT_ONCE = 64
"""Connections that are accepted in one turn."""

_logger = logging.getLogger(__name__)


class SharedListener:
    """Takes new connections as long as no other process has fewer, and otherwise leaves them to it for a moment.

    libuv accepts all that wait: of clients that connect together, as pools of connections do, the process that wakes up
    first would get all, and most often it is the same one. What is not taken in that moment, by a process that is busy
    or hangs, is taken after all: first one connection, then two, and so on. In place of an event loop's server, whose
    methods it has that uvicorn calls.

    Args:
        listening: the socket, not blocking.
        make: returns the protocol of a new connection.
        tls: for HTTPS.
        shares: how many connections this process and the others have.
    """

    def __init__(
        self,
        listening: socket.socket,
        make: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext | None,
        shares: ConnectionShares,
    ) -> None:
        self._socket = listening
        self._make = make
        self._tls = tls
        self._shares = shares
        self._loop = asyncio.get_running_loop()
        self._left_over = 1
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop.add_reader(listening.fileno(), self._accept)
        shares.begin()

    def close(self) -> None:
        """Accept no more connections."""
        if self._is_closed:
            return
        self._is_closed = True
        self._shares.end()
        if self._timer is None:
            self._loop.remove_reader(self._socket.fileno())
        else:
            self._timer.cancel()

    @property
    def is_beginning(self) -> bool:
        """Whether connections were accepted that have no protocol yet: those of TLS while they shake hands."""
        return bool(self._beginning)

    async def wait_closed(self) -> None:
        """Return at once: connections are waited for by the server itself."""

    def _accept(self) -> None:
        """Take as many connections as are this process's, or leave them to others for a moment."""
        room = self._room()
        if room:
            self._take(room)
        else:
            self._pause(PAUSE_SECONDS)

    def _room(self) -> int:
        room = self._shares.room(len(self._beginning))
        return MAX_AT_ONCE if room is None else min(room, MAX_AT_ONCE)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._timer = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        """Take what is this process's by now; else what no other has taken, twice as much as the last time."""
        self._timer = None
        self._loop.add_reader(self._socket.fileno(), self._accept)
        room = self._room()
        if self._take(room or self._left_over) and not room:
            self._left_over = min(2 * self._left_over, MAX_AT_ONCE)
        else:
            self._left_over = 1

    def _take(self, most: int) -> bool:
        """Take so many connections at most; returns whether there were so many."""
        for _ in range(most):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another process was faster
                return False
            except OSError as error:  # no descriptors are left: the client waits for the next attempt
                _logger.warning("a connection cannot be accepted: %s", error)
                self._pause(FULL_SECONDS)
                return False
            self._begin(connection)
        return True

    def _begin(self, connection: socket.socket) -> None:
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
