"""Accepts connections for gRPC, and relays them to the gRPC of this process.

For sockets that several processes share, and for servers that say a while before their end that they leave.

gRPC accepts from no socket but its own, and ends no connection without cancelling calls that come at that moment; see
docs/decisions/0016-grpc-of-several-processes.md.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Callable

from service.grpc.relayed_connection import RelayedConnection
from service.processes.connection_shares import ConnectionShares
from service.server.shared_listener import SharedListener

_LAST_SECONDS = 1.0
"""Seconds that clients have to read the last answers when the server ends."""
_STAY_SECONDS = 1.0
"""Seconds after which clients are sent away again that have come back to a server that is about to leave."""
_logger = logging.getLogger(__name__)


class Relay:
    """The connections of a process among several. Used on the event loop only.

    Args:
        listen: returns the listening sockets, which other processes may have as well; may raise ListenError.
        tls: for certificates; None without.
        seconds: how long a client may take to read what is left for it once its connection has ended.
        shares: how many connections this process and the others have.

    Attributes:
        address: where gRPC is to listen: a name of this machine's that no folder has and that ends with the process.
        seconds: the same.
    """

    def __init__(
        self,
        listen: Callable[[], list[socket.socket]],
        tls: ssl.SSLContext | None,
        seconds: float,
        shares: ConnectionShares,
    ) -> None:
        self.seconds = seconds
        self._shares = shares
        self._name = f"kuiper-{secrets.token_hex(16)}"
        self.address = f"unix-abstract:{self._name}"
        self._listen = listen
        self._sockets: list[socket.socket] = []
        self._tls = tls
        self._listeners: list[SharedListener] = []
        self._connections: dict[str, RelayedConnection] = {}
        self._open: set[RelayedConnection] = set()
        self._connecting: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        self._is_leaving = self._is_ending = False

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._sockets[0].getsockname()[1])

    @property
    def has_clients(self) -> bool:
        """Whether clients are connected, or are about to be."""
        return bool(self._open) or any(listener.is_beginning for listener in self._listeners)

    def open(self) -> None:
        """Open the sockets.

        Raises:
            ListenError: an address cannot be listened on.
        """
        self._sockets = self._listen()

    def start(self) -> None:
        """Accept connections; gRPC listens already."""
        self._listeners = [
            SharedListener(opened, lambda: RelayedConnection(self), self._tls, self._shares)
            for opened in self._sockets
        ]

    def close(self) -> None:
        """Accept no more connections."""
        for listener in self._listeners:
            listener.close()

    def leave(self) -> None:
        """Leave new connections to the other processes; those that are beginning end as soon as they have begun."""
        self._is_leaving = True
        self.close()

    def end_connections(self) -> None:
        """Have all clients begin their next calls on other connections; connections that come yet soon do the same."""
        self._is_ending = True
        for connection in list(self._open):
            connection.make_last()

    async def stop(self) -> None:
        """Return when the clients have read all answers; gRPC has ended. Connections that are left are cut off."""
        self.close()
        try:
            async with asyncio.timeout(_LAST_SECONDS):
                while self._open:
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            for connection in list(self._open):
                connection.abort()
        for opened in self._sockets:
            opened.close()

    def client_of(self, peer: str) -> str | None:
        """Return where the client of a call is; None where the call came on no connection that was relayed.

        Args:
            peer: as gRPC gives it.
        """
        connection = self._connections.get(peer)
        return None if connection is None else connection.client

    def begin(self, connection: RelayedConnection) -> None:
        """Take note of a connection with a client, and connect it with gRPC."""
        self._open.add(connection)
        self._shares.add()
        if self._is_leaving:
            connection.make_last()
        elif self._is_ending:
            asyncio.get_running_loop().call_later(_STAY_SECONDS, connection.make_last)
        task = asyncio.get_running_loop().create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def end(self, connection: RelayedConnection) -> None:
        """Take note that a connection has ended."""
        self._open.discard(connection)
        self._shares.remove()
        self.forget(connection)
        self._ended.set()

    def forget(self, connection: RelayedConnection) -> None:
        """Take note that no more calls come on a connection."""
        # the system may have given its name to another one already
        if self._connections.get(connection.name) is connection:
            del self._connections[connection.name]

    async def _connect(self, connection: RelayedConnection) -> None:
        inner = None
        try:
            inner = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            inner.setblocking(False)
            inner.bind("")  # the system gives it a name of its own, by which gRPC knows it
            inner.connect(f"\0{self._name}")
            name = inner.getsockname()
            connection.name = f"unix-abstract:{name[1:].decode()}"
            self._connections[connection.name] = connection
            loop = asyncio.get_running_loop()
            await loop.create_unix_connection(lambda: connection.upstream, sock=inner)
        except OSError as error:  # no descriptors are left, or gRPC listens no more
            _logger.warning("a connection for gRPC cannot be relayed: %s", error)
            self.forget(connection)
            connection.close()
            if inner is not None:
                inner.close()
