import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from service.server import shared_listener as module
from service.server.shared_listener import SharedListener

pytestmark = pytest.mark.anyio


class Full(socket.socket):
    """A listening socket of a process that has no descriptors left the first times that it accepts.

    Attributes:
        attempts: when it was asked to.
    """

    attempts: list[float]
    refused = 3

    def accept(self) -> tuple[socket.socket, Any]:
        self.attempts.append(asyncio.get_running_loop().time())
        if len(self.attempts) <= self.refused:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


@pytest.fixture
def full() -> Iterator[Full]:
    with Full() as made:
        made.attempts = []
        made.bind(("127.0.0.1", 0))
        made.listen()
        made.setblocking(False)
        yield made


async def test_without_descriptors_is_tried_again_after_a_while(
    full: Full, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FULL_SECONDS", 0.05)
    made = asyncio.Event()

    class Greeter(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.set()
            transport.close()

    listener = SharedListener(full, Greeter, None)
    with caplog.at_level(logging.WARNING), socket.create_connection(full.getsockname()):
        async with asyncio.timeout(20):
            await made.wait()
    listener.close()
    waits = [after - before for before, after in zip(full.attempts[:3], full.attempts[1:4], strict=True)]
    assert min(waits) >= 0.04, waits  # clocks of event loops round
    assert len(caplog.records) == Full.refused


async def test_clients_that_shake_hands_are_beginning(full: Full) -> None:
    full.attempts = [0.0] * Full.refused
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener = SharedListener(full, asyncio.Protocol, context)

    async def until(wanted: bool) -> None:
        async with asyncio.timeout(20):
            while listener.is_beginning is not wanted:
                await asyncio.sleep(0)

    await until(False)
    client = socket.create_connection(full.getsockname())
    await until(True)
    client.close()
    await until(False)
    listener.close()


async def test_clients_that_never_shake_hands_are_aborted(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.05)
    full.attempts = [0.0] * Full.refused
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listener = SharedListener(full, asyncio.Protocol, context)
    with socket.create_connection(full.getsockname()) as client:
        client.setblocking(False)
        async with asyncio.timeout(20):
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
    listener.close()


async def test_connections_that_come_together_are_accepted_one_in_each_turn() -> None:
    taken: list[int] = []

    class Counted(asyncio.Protocol):
        def __init__(self, own: int) -> None:
            self.own = own

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            taken.append(self.own)

    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=16))
        for _ in range(16):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        for own in range(2):
            opened = stack.enter_context(listening.dup())  # an event loop watches a descriptor once
            opened.setblocking(False)
            stack.callback(SharedListener(opened, partial(Counted, own), None).close)
        async with asyncio.timeout(20):
            while len(taken) < 16:
                await asyncio.sleep(0)
    assert taken.count(0) == taken.count(1) == 8
