"""The last response of a connection says so, and nothing that was sent is lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from service.server.connection import Connection
from service.server.connections import Connections
from tests.service.scheduling.stubs import until
from tests.service.server.shared import make_connections

pytestmark = pytest.mark.anyio
GET = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"


@dataclass
class Gate:
    """An application that answers when it is let."""

    asked: int = 0
    may_response: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await self.may_response.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})


@dataclass
class Talk:
    """A connection, seen from both its ends."""

    gate: Gate
    shared: Connections
    server: Connection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def head(self) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 20)

    async def is_closed(self) -> bool:
        return await asyncio.wait_for(self.reader.read(), 20) == b""


@pytest.fixture
async def talk() -> AsyncIterator[Talk]:
    gate, shared = Gate(), make_connections()
    config = uvicorn.Config(gate, http=Connection, log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(config, state, {}, shared=shared), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await until(lambda: bool(state.connections))
        (connection,) = state.connections
        assert isinstance(connection, Connection)
        yield Talk(gate, shared, connection, reader, writer)
        writer.close()
        await until(lambda: not state.connections)


async def test_idle_client_gets_one_more_response(talk: Talk) -> None:
    talk.gate.may_response.set()
    talk.writer.write(GET)
    assert b"connection" not in await talk.head()
    talk.server.make_last()
    talk.writer.write(GET)
    assert b"\r\nconnection: close\r\n" in await talk.head()
    assert await talk.is_closed()


async def test_request_that_is_being_answered_is_the_last(talk: Talk) -> None:
    talk.writer.write(GET)
    await until(lambda: talk.gate.asked == 1)
    talk.server.make_last()
    talk.gate.may_response.set()
    assert b"\r\nconnection: close\r\n" in await talk.head()
    assert await talk.is_closed()


@pytest.mark.parametrize("count", [2, 20])
async def test_requests_that_were_sent_ahead_are_answered_first(talk: Talk, count: int) -> None:
    talk.writer.write(GET * count)
    await until(lambda: talk.gate.asked == 1 and bool(talk.server._held))
    talk.server.make_last()
    talk.gate.may_response.set()
    heads = [await talk.head() for _ in range(count)]
    assert [b"connection: close" in head for head in heads] == [False] * (count - 1) + [True]
    assert await talk.is_closed()


async def test_connections_that_begin_once_the_server_leaves_end_after_one_response(talk: Talk) -> None:
    talk.gate.may_response.set()
    talk.shared.is_leaving = True
    reader, writer = await asyncio.open_connection(*talk.writer.get_extra_info("peername"))
    writer.write(GET)
    assert b"\r\nconnection: close\r\n" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
    writer.close()
