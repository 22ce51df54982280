"""Accepts connections from a socket that other processes accept from as well."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

PAUSE_SECONDS = 0.001
"""How long a process leaves further connections to the others: they need a tenth of it to wake up."""
FULL_SECONDS = 1.0
"""How long a process that cannot accept connections tries no more."""
MOST_AT_ONCE = 64
"""Connections that are accepted in one turn where they come faster than all processes take them."""

_logger = logging.getLogger(__name__)


class SharedListener:
    """Takes one connection, leaves the next to the other processes for a moment, then takes two, and so on.

    libuv accepts all that wait: of clients that connect together, as pools of connections do, the process that wakes up
    first would get all. In place of an event loop's server, whose methods it has that uvicorn calls.

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
        self._at_once = 1
        self._taken = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._beginning: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._loop.add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more connections."""
        if self._is_closed:
            return
        self._is_closed = True
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
        """Take some connections; where the last ones came a moment ago, only after a pause.

        Without a pause the socket stays among those that the system watches: who is added to them anew is woken first.
        """
        if self._loop.time() - self._taken >= PAUSE_SECONDS:
            self._take()
        else:
            self._pause(PAUSE_SECONDS)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._timer = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._timer = None
        self._loop.add_reader(self._socket.fileno(), self._accept)
        self._take()

    def _take(self) -> None:
        """Take as many connections as it is this process's turn to, twice as many as in its turn before."""
        for _ in range(self._at_once):
            try:
                connection, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another process was faster
                self._at_once = 1
                return
            except OSError as error:  # no descriptors are left: the client waits for the next attempt
                _logger.warning("a connection cannot be accepted: %s", error)
                self._pause(FULL_SECONDS)
                return
            self._taken = self._loop.time()
            self._begin(connection)
        self._at_once = min(2 * self._at_once, MOST_AT_ONCE)

    def _begin(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        task = self._loop.create_task(self._connect(connection))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._make, connection, ssl=self._tls)
        except (OSError, TimeoutError) as error:  # the client has left, or speaks no TLS
            _logger.debug("a connection did not come about: %s", error)
            connection.close()
