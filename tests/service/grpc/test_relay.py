"""The relay's own table of connections; what clients see of it is tested in `tests/service/processes`."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from service.grpc.relay import Relay
from service.grpc.relayed_connection import RelayedConnection
from service.processes.connection_shares import ConnectionShares

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the relay is for Linux only"),
]


async def until(is_true: Callable[[], bool]) -> None:
    """Return once something is true."""
    async with asyncio.timeout(20):
        while not is_true():
            await asyncio.sleep(0.001)


_HIGH_WATER = 1 << 16
"""Bytes that asyncio takes before it has whoever sends them wait."""


class SameName(socket.socket):
    """A socket to which the system gives the name of one that was closed."""

    def getsockname(self) -> Any:
        return b"\0same"


class Client(asyncio.Transport):
    """The connection of a client that does not read.

    Args:
        host: where it is.
        opened: a socket.
    """

    def __init__(self, host: str, opened: socket.socket) -> None:
        super().__init__({"peername": (host, 1), "socket": opened})

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        """Wait for the client to read."""

    def abort(self) -> None:
        """Nobody asks whether that has ended it."""


@pytest.fixture
def opened() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


async def test_a_name_belongs_to_the_last_connection_that_has_it(
    monkeypatch: pytest.MonkeyPatch, opened: socket.socket
) -> None:
    monkeypatch.setattr(socket, "socket", SameName)
    relay = Relay(list, None, 60.0, ConnectionShares())
    inside: list[asyncio.StreamWriter] = []
    server = await asyncio.start_unix_server(
        lambda _, writer: inside.append(writer), relay.address.replace("unix-abstract:", "\0")
    )

    first, second = RelayedConnection(relay), RelayedConnection(relay)
    first.connection_made(Client("192.0.2.1", opened))
    await until(lambda: len(inside) == 1 and first.upstream.transport is not None)
    assert relay.client_of("unix-abstract:same") == "192.0.2.1"
    inside[0].close()
    await until(lambda: first.upstream.transport is None)
    assert relay.client_of("unix-abstract:same") is None
    second.connection_made(Client("192.0.2.2", opened))
    await until(lambda: second.upstream.transport is not None)
    first.connection_lost(None)
    assert relay.client_of("unix-abstract:same") == "192.0.2.2"
    second.connection_lost(None)
    assert relay.client_of("unix-abstract:same") is None
    await until(lambda: second.upstream.transport is None)
    for writer in inside:
        writer.close()
        await writer.wait_closed()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("closes", [False, True])
async def test_clients_that_read_nothing_are_given_up(opened: socket.socket, closes: bool) -> None:
    """gRPC cannot tell: it waits until its last bytes are taken before it asks whether a client is there."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    relay = Relay(lambda: [listening], None, 0.1, ConnectionShares())
    inside: list[asyncio.StreamWriter] = []

    async def send_for_ever(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside.append(writer)
        with suppress(ConnectionError):
            while True:
                writer.write(frame)
                await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(send_for_ever, relay.address.replace("unix-abstract:", "\0"))
    relay.open()
    relay.start()
    frame = (1 << 14).to_bytes(3, "big") + bytes(6 + (1 << 14))
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.setblocking(False)
    await asyncio.get_running_loop().sock_connect(opened, listening.getsockname())
    await until(lambda: bool(inside) and inside[0].transport.get_write_buffer_size() > _HIGH_WATER)
    if closes:
        opened.shutdown(socket.SHUT_WR)
    await until(lambda: not relay.has_clients)
    with suppress(ConnectionError):
        await inside[0].wait_closed()
    server.close()
    await server.wait_closed()
    await relay.stop()
