"""A connection that is accepted from a socket of several processes, and relayed to the gRPC of this one."""

import asyncio
import socket
from typing import Protocol, cast

from service.grpc.frame_ends import GOAWAY, FrameEnds
from service.peer import address_of

_PATIENCE = 2
"""How many times as long as it may take to send something it may lie unread, as gRPC has it where it listens itself."""
_MOST_MS = (1 << 31) - 1


class Connections(Protocol):
    """Where connections are registered."""

    @property
    def seconds(self) -> float:
        """How long a client may take to read what is left for it once its connection has ended."""

    def begin(self, connection: "RelayedConnection") -> None:
        """Take note of a connection with a client, and connect it with gRPC."""

    def end(self, connection: "RelayedConnection") -> None:
        """Take note that a connection has ended."""

    def forget(self, connection: "RelayedConnection") -> None:
        """Take note that no more calls come on a connection."""


class RelayedConnection(asyncio.Protocol):
    """The end of the client.

    Args:
        connections: where it is registered.

    Attributes:
        client: address of the client, as over HTTP.
        name: name of the connection with gRPC, by which calls are told apart; empty until there is one.
        upstream: the end of gRPC.
    """

    def __init__(self, connections: Connections) -> None:
        self.client = ""
        self.name = ""
        self.upstream = Upstream(self)
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._early: list[bytes] = []
        self._frames = FrameEnds()
        self._is_last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self.client = address_of(transport.get_extra_info("peername"))
        _give_up_unread(transport.get_extra_info("socket"), _PATIENCE * self._connections.seconds)
        self._connections.begin(self)

    def data_received(self, data: bytes) -> None:
        """Relay what the client sends; what comes before there is a connection with gRPC is kept, and no more read."""
        if self.upstream.transport is None:
            self._early.append(data)
            self.pause_reading()
        else:
            self.upstream.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection with gRPC as well."""
        del exc
        self._connections.end(self)
        self._transport = None
        self.upstream.close()

    def pause_writing(self) -> None:
        """Read no more of gRPC until the client has read what it was sent."""
        if self.upstream.transport is not None:
            self.upstream.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read what gRPC answers again."""
        if self.upstream.transport is not None:
            self.upstream.transport.resume_reading()

    def pause_reading(self) -> None:
        """Read no more of the client."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read what the client sends again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def upstream_made(self, transport: asyncio.Transport) -> None:
        """Send what has come already."""
        if self._transport is None:
            transport.close()
            return
        if self._early:
            transport.writelines(self._early)
            self._early = []
            self.resume_reading()

    def upstream_lost(self) -> None:
        """End the connection: gRPC has done so."""
        self._connections.forget(self)
        self.close()

    def answer(self, data: bytes) -> None:
        """Relay what gRPC sends."""
        place = self._frames.advance(data)
        if self._transport is None or self._transport.is_closing():
            return
        if self._is_last and place >= 0:
            self._is_last = False
            data = b"".join((data[:place], GOAWAY, data[place:]))
        self._transport.write(data)

    def make_last(self) -> None:
        """Have the client begin its next calls on another connection, and end this one when it needs it no more."""
        if self._transport is None or self._transport.is_closing():
            return
        if self._frames.is_between:
            self._transport.write(GOAWAY)
        else:
            self._is_last = True

    def close(self) -> None:
        """End the connection once the client has read what it was sent, or after a while."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.close()
            asyncio.get_running_loop().call_later(self._connections.seconds, transport.abort)

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()


class Upstream(asyncio.Protocol):
    """The end of gRPC.

    Args:
        downstream: the end of the client.

    Attributes:
        transport: sends to gRPC; None before there is a connection, and after it.
    """

    def __init__(self, downstream: RelayedConnection) -> None:
        self.transport: asyncio.Transport | None = None
        self._downstream = downstream

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = cast("asyncio.Transport", transport)
        self._downstream.upstream_made(self.transport)

    def data_received(self, data: bytes) -> None:
        """Relay what gRPC sends."""
        self._downstream.answer(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the client's connection as well."""
        del exc
        self.transport = None
        self._downstream.upstream_lost()

    def pause_writing(self) -> None:
        """Read no more of the client until gRPC has read what it was sent."""
        self._downstream.pause_reading()

    def resume_writing(self) -> None:
        """Read what the client sends again."""
        self._downstream.resume_reading()

    def close(self) -> None:
        """End the connection with gRPC: its calls are cancelled."""
        if self.transport is not None:
            self.transport.close()


def _give_up_unread(connection: socket.socket, seconds: float) -> None:
    """Have the system end a connection whose client takes nothing of what it is sent for so long.

    gRPC has it do so on its own connections, but knows nothing of this one. It also ends those that close already, and
    those of clients that are gone while nothing is read of them.
    """
    milliseconds = min(max(round(seconds * 1e3), 1), _MOST_MS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
