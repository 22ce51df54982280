"""Heads without an end, and bytes that are no HTTP, on a real socket."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from math import inf
from typing import Any, ClassVar

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.server import ServerState

from service.context import has_arrived
from service.server import connection as module
from service.server import connections as shared_module
from service.server.connection import (
    DROPPED_BYTES,
    FREE_CHUNKS,
    HEAD_BYTES,
    LEAST_CHUNK_BYTES,
    Connection,
)
from service.server.connections import DRIP_RATE, LEAST_RATE
from service.server.reader import PACKET_BYTES
from tests.service.scheduling.stubs import until
from tests.service.server.shared import make_connections

pytestmark = pytest.mark.anyio
LENGTH = b"Content-Length: 2\r\n\r\n"
HEAD = b"POST /infer HTTP/1.1\r\nHost: test\r\n"


class Counted(Connection):
    """Counts the bytes it has read: the next packet is sent after them, as the system may join two of them."""

    made: ClassVar[list["Counted"]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.made.append(self)
        self.read_bytes = 0

    def data_received(self, data: bytes) -> None:
        self.read_bytes += len(data)
        super().data_received(data)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    config = uvicorn.Config(PlainTextResponse("fine"), http=Counted, log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Counted(config, state, {}, shared=make_connections()), "127.0.0.1", 0
    )
    async with server:
        yield server.sockets[0].getsockname()[1]
        await until(lambda: not state.connections)
    Counted.made.clear()


async def receive(port: int, *packets: bytes) -> bytes:
    """Send packets, each once the server has read the one before; return all it sends before it closes."""
    count, sent = len(Counted.made), 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await until(lambda: len(Counted.made) > count)
        connection = Counted.made[-1]
        for packet in packets:
            sent += len(packet)
            writer.write(packet)
            await writer.drain()
            await until(
                lambda sent=sent: connection.read_bytes >= sent or connection.transport.is_closing()  # type: ignore[misc]  # bound early
            )
        return await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()


async def talk(port: int, *packets: bytes) -> tuple[int, dict[str, Any]]:
    """Send packets one by one; return status and body of the last response before the server closes."""
    response = await receive(port, *packets)
    head, _, body = response.rpartition(b"\r\n\r\n")
    last = head[head.rindex(b"HTTP/1.1") :]
    assert b"\r\nConnection: close\r\n" in last
    assert b"\r\nX-Request-ID: " in last
    return int(last.split()[1]), json.loads(body)


async def test_what_is_no_http_is_reported_in_the_one_error_shape(port: int) -> None:
    status, body = await talk(port, b"\x16\x03\x01\r\n\r\n")
    assert (status, body["code"], list(body)) == (400, "invalid_http", ["error", "code", "details"])


async def test_head_without_an_end_is_refused(port: int) -> None:
    packets = [HEAD + b"X: ", *[b"a" * 10_000] * (HEAD_BYTES // 10_000 + 1)]
    status, body = await talk(port, *packets)
    assert (status, body["code"], body["details"]) == (431, "head_too_large", {"limit": HEAD_BYTES})


async def test_refusal_reaches_a_client_that_sends_on(port: int) -> None:
    """Closed with unread bytes, the connection would be reset, and the response lost."""

    def send_all_then_read() -> bytes:
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(HEAD + b"X: " + b"a" * (DROPPED_BYTES // 2))
            with client.makefile("rb") as stream:
                return stream.read()

    assert (await asyncio.to_thread(send_all_then_read)).startswith(b"HTTP/1.1 431 ")


async def test_what_is_sent_after_a_refusal_is_bounded(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"a" * (32 * DROPPED_BYTES))
    with pytest.raises(ConnectionError):
        await writer.drain()
    writer.close()
    assert Counted.made[-1].read_bytes < 2 * DROPPED_BYTES


async def test_body_in_countless_tiny_chunks_is_refused(port: int) -> None:
    post = HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n"
    status, body = await talk(port, post, b"1\r\na\r\n" * (FREE_CHUNKS + FREE_CHUNKS // 60))
    assert (status, body["code"], body["details"]["unit"]) == (413, "too_many_values", "chunks")


async def test_endless_trailers_are_refused_and_none_is_kept(port: int) -> None:
    post = HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    status, body = await talk(port, post, b"T: a\r\n" * (HEAD_BYTES // 6 + 10))
    assert (status, body["code"]) == (400, "invalid_http")
    status, body = await talk(port, post, b"T: a\r\n" * 100 + b"\r\n", b"\0\r\n\r\n")
    assert (status, body["code"]) == (400, "invalid_http"), "only what follows the body is refused"


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        (b"GET / HTTP/1.1\r\n", "0 Host headers"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", "2 Host headers"),
        (b"GET / HTTP/2.0\r\nHost: a\r\n", "HTTP version is 2.0"),
        (b"GET / HTTP/0.9\r\n", "HTTP version is 0.9"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n", "transfer coding"),
        (b"GET http://user@a/ HTTP/1.1\r\nHost: a\r\n", "request target"),
    ],
)
async def test_what_rfc_9112_has_refused_is_refused(port: int, head: bytes, problem: str) -> None:
    response = await receive(port, head + b"X-Request-ID: r1\r\n\r\n")
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b"X-Request-ID: r1\r\n" in response
    body = json.loads(response.partition(b"\r\n\r\n")[2])
    assert body["code"] == "invalid_http"
    assert problem in body["error"]


async def test_authority_of_the_target_stands_in_for_the_host() -> None:
    seen: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(([value for name, value in scope["headers"] if name == b"host"], scope["path"]))
        await PlainTextResponse("fine")(scope, receive, send)

    config = uvicorn.Config(app, http=Connection, log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(config, ServerState(), {}, shared=make_connections()), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
        writer.write(
            b"GET http://b:1/x HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        )
        await asyncio.wait_for(reader.read(), 20)
        writer.close()
    assert seen == [([b"b:1"], "/x"), ([b"a"], "/")]


async def test_chunk_extensions_are_bounded(port: int) -> None:
    post = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    endless = b"1;" + b"a" * (HEAD_BYTES + 100)
    each_short = b"1;" + b"a" * 200 + b"\r\na\r\n"
    for chunks in (endless, each_short * (2 + HEAD_BYTES // 180)):
        half = len(chunks) // 2
        status, body = await talk(port, post, chunks[:half], chunks[half:])
        assert (status, body["code"], body["details"]) == (400, "invalid_http", {"limit": HEAD_BYTES})
    status, body = await talk(port, post, b"1;a=b\r\na\r\n" * 100 + b"0\r\n\r\n", b"\0\r\n\r\n")
    assert body["details"] == {}, "only what follows the body is refused"


async def test_blank_lines_before_a_request_are_bounded(port: int) -> None:
    few, many = b"\r\n" * 10, b"\r\n" * (HEAD_BYTES // 4)
    last = HEAD + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    assert b" 200 OK" in await receive(port, few, last)
    assert await receive(port, many, many, few) == b""


async def test_small_chunks_are_taken_where_they_are_few_or_not_tiny(port: int) -> None:
    post = HEAD.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n"
    tiny, small = b"1\r\na\r\n" * (FREE_CHUNKS - 1), b"40\r\n" + b"a" * LEAST_CHUNK_BYTES + b"\r\n"
    for body in (tiny, small * 3 * FREE_CHUNKS, tiny):
        status, response = await talk(port, post, body, b"0\r\n\r\n", b"\0\r\n\r\n")
        assert (status, response["code"]) == (400, "invalid_http"), "only what follows the body is refused"


async def test_bodies_are_no_part_of_the_head(port: int) -> None:
    size = 2 * HEAD_BYTES
    body = [b"a" * (size // 8)] * 8
    post = b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % size
    status, response = await talk(port, post, *body, post, *body, b"\0\r\n\r\n")
    assert (status, response["code"]) == (400, "invalid_http")


async def test_head_that_does_not_arrive_is_aborted(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.01)
    monkeypatch.setattr(shared_module, "TICK_SECONDS", 0.01)
    status, body = await talk(port, HEAD)
    assert (status, body["code"]) == (408, "head_timeout")
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await asyncio.wait_for(reader.read(), 20) == b"", "a silent connection is closed in silence"
    writer.close()


@pytest.mark.parametrize(
    ("packets", "known"),
    [
        ([HEAD + b"X-Request-ID: r1\r\nX: y\r\n", b"no header\r\n\r\n"], True),
        ([HEAD + b"X-Request-ID: r1\r\nX: ", *[b"a" * 10_000] * (HEAD_BYTES // 10_000 + 1)], True),
        ([b"\x16\x03\x01\r\n\r\n"], False),
        ([HEAD + b"X-Request-ID: r1\r\n\r\n", b"\x16\x03\x01\r\n\r\n"], False),
    ],
)
async def test_id_of_the_client_comes_back_where_it_had_come(
    port: int, packets: list[bytes], known: bool
) -> None:
    response = await receive(port, *packets)
    last = response[response.rindex(b"HTTP/1.1 4") :]
    assert (b"\r\nX-Request-ID: r1\r\n" in last) == known


async def test_no_more_of_a_body_is_read_than_is_asked_for() -> None:
    connections = []
    is_asked, asked = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await is_asked.wait()
        await PlainTextResponse(str(len(await Request(scope, receive).body())))(scope, receive, send)

    def connect() -> Connection:
        connections.append(Connection(config, ServerState(), {}, shared=make_connections()))
        return connections[-1]

    config = uvicorn.Config(slow, http=Connection, log_config=None)
    config.load()
    size = 50 * PACKET_BYTES
    async with await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
        await asked.wait()
        await until(lambda: connections[0].flow.read_paused)
        assert len(connections[0].cycle.body) <= HIGH_WATER_LIMIT + PACKET_BYTES
        is_asked.set()
        while str(size).encode() != await reader.readline():
            pass
        writer.close()


@pytest.mark.parametrize(
    ("packets", "has_body"), [([HEAD + LENGTH + b"12"], True), ([HEAD + LENGTH, b"12"], False)]
)
async def test_request_is_started_once_its_head_is_there(packets: list[bytes], has_body: bool) -> None:
    started: list[bool] = []
    packets_read: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        started.append(has_arrived(scope))
        await Request(scope, receive).body()
        await PlainTextResponse("fine", headers={"Connection": "close"})(scope, receive, send)

    class Observed(Connection):
        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            packets_read.append(len(data))

    config = uvicorn.Config(app, http=Observed, log_config=None)
    config.load()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Observed(config, ServerState(), {}, shared=make_connections()), "127.0.0.1", 0
    )
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for number, packet in enumerate(packets, 1):
            writer.write(packet)
            await until(lambda number=number: len(packets_read) == number and len(started) == 1)  # type: ignore[misc]  # bound early
        assert (await asyncio.wait_for(reader.read(), 20)).endswith(b"fine")
        writer.close()
    assert started == [has_body]


class Held:
    """An application that answers nothing before it is let, and connections to it."""

    def __init__(self, keep_alive: int = 5, **limits: Any) -> None:
        self.shared = make_connections(**limits)
        self.connections: list[Connection] = []
        self.may_response = asyncio.Event()
        self.body = b"fine"
        self.reads = True
        config = uvicorn.Config(
            self._respond,
            http=Connection,
            interface="asgi3",
            log_config=None,
            timeout_keep_alive=keep_alive,
        )
        config.load()
        self._config, self._state = config, ServerState()

    def connect(self) -> Connection:
        self.connections.append(Connection(self._config, self._state, {}, shared=self.shared))
        return self.connections[-1]

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await Request(scope, receive).body() if self.reads else b""
        await self.may_response.wait()
        await Response(body or self.body)(scope, receive, send)


@pytest.mark.parametrize("body", [b"", bytes(5000), b"\r\n\r\n" * 1000])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_request_is_parsed_when_the_one_before_has_its_response_and_all_are_answered(
    body: bytes, is_chunked: bool
) -> None:
    held = Held()
    framing, sent = b"Content-Length: %d" % len(body), body
    if is_chunked:
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        framing, sent = b"Transfer-Encoding: chunked", chunk + b"0\r\nT: trailer\r\n\r\n"
    request = HEAD.replace(b"GET", b"POST") + framing + b"\r\n\r\n" + sent
    count = 2000 if not body else 40
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request * (count - 1) + request.replace(b"Host", b"Connection: close\r\nHost"))
        await until(lambda: bool(held.connections) and bool(held.connections[0]._held))
        (connection,) = held.connections
        assert not connection.pipeline
        assert len(connection._held) <= 2 * PACKET_BYTES
        held.may_response.set()
        responses = await asyncio.wait_for(reader.read(), 60)
        writer.close()
    assert responses.count(b"HTTP/1.1 200 OK") == count
    assert len(responses.split(b"\r\n\r\n", 1)[1]) > count * len(body or b"fine")


@pytest.mark.parametrize("packet_bytes", [1, 2, 3, 7])
async def test_requests_are_told_apart_wherever_their_packets_end(packet_bytes: int) -> None:
    held = Held()
    held.may_response.set()
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n1;a\r\nb\r\n0\r\nT: t\r\n\r\n"
    requests = (HEAD + b"\r\n", HEAD + LENGTH + b"\r\n", b"\r\n\r\n" + HEAD + b"\r\n", chunked)
    data = b"".join(requests * 3)
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await until(lambda: bool(held.connections))
        (connection,) = held.connections
        for place in range(0, len(data), packet_bytes):
            connection.data_received(data[place : place + packet_bytes])
        for body in (b"fine", b"\r\n", b"fine", b"\r\n\r\nb") * 3:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
            assert head.startswith(b"HTTP/1.1 200 OK")
            assert await reader.readexactly(len(body)) == body
        writer.close()


async def test_a_request_that_begins_within_another_is_refused() -> None:
    """The parser knows of no such end of a request, until it does."""
    held = Held()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await until(lambda: bool(held.connections))
        (connection,) = held.connections
        connection.data_received(HEAD + b"\r\n")
        super(Connection, connection).data_received(HEAD + b"\r\n")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400 ")
        writer.close()


async def test_a_response_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(module, "SEND_TIMEOUT", 0.05)
    held = Held()
    held.body = bytes(32 << 20)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1000)
        writer.write(HEAD + b"\r\n")
        await until(lambda: bool(held.connections) and held.connections[0].transport.is_closing())
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(len(held.body))
        writer.close()


async def test_a_last_response_that_nobody_reads_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(module, "SEND_TIMEOUT", 0.05)
    held = Held()
    held.body = bytes(32 << 20)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1000)
        writer.write(HEAD + b"Connection: close\r\n\r\n")
        await until(lambda: bool(held.connections) and held.connections[0].transport.is_closing())
        await until(lambda: not held._state.connections)
        writer.close()


async def test_the_oldest_idle_connection_makes_room() -> None:
    held = Held(most=2)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        clients = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection(*address)
            clients.append((reader, writer))
            writer.write(HEAD + b"\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"fine"), 20)
        assert await asyncio.wait_for(clients[0][0].read(), 20) == b""
        assert len(held._state.connections) == 2
        for _, writer in clients:
            writer.close()


async def test_an_idle_connection_is_closed_and_one_that_asks_again_is_not() -> None:
    held = Held(keep_alive=1000)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(2):
            writer.write(HEAD + b"\r\n")
            assert await asyncio.wait_for(reader.readuntil(b"fine"), 20)
            (connection,) = held.connections
            connection.check(connection.since + 999.0)  # it has not been idle for long
        held.may_response.clear()
        writer.write(HEAD + b"\r\n")
        await until(lambda: connection.is_running)
        connection.check(connection.since + 1001.0)
        held.may_response.set()
        assert await asyncio.wait_for(reader.readuntil(b"fine"), 20)
        connection.check(connection.since + 1001.0)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_blank_lines_are_no_request_and_a_body_that_nobody_reads_may_arrive() -> None:
    held = Held(keep_alive=1000)
    held.reads = False
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(HEAD + b"Content-Length: 2\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"fine"), 20)
        (connection,) = held.connections
        for data in (b"ab", b"\r\n", b"\r\n\r\n"):
            connection.since = before = 0.0
            connection.data_received(data)
            assert (connection.since > before) == (data == b"ab")
            assert connection.pace(0.0) == DRIP_RATE
        connection.check(1001.0)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()


async def test_a_client_that_is_gone_leaves_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_module, "TICK_SECONDS", 0.01)
    held = Held(keep_alive=1000)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(HEAD + b"\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"fine"), 20)
        assert held.shared._timer is not None
        writer.close()
        await until(lambda: held.shared._timer is None)


async def test_connections_show_what_their_clients_do() -> None:
    held = Held()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await until(lambda: bool(held.connections))
        (connection,) = held.connections

        def pace(seconds: float) -> float:
            return connection.pace(connection.since + seconds)

        assert (pace(0.9), pace(2.0)) == (inf, 0.0)
        writer.write(HEAD + b"Content-Length: 4\r\n\r\nab")
        await until(lambda: pace(2.0) == 1.0)
        assert not connection.is_running
        writer.write(b"cd")
        await until(lambda: connection.is_running)
        held.may_response.set()
        assert await asyncio.wait_for(reader.readuntil(b"abcd"), 20)
        assert pace(0.0) == DRIP_RATE
        assert connection.address == "127.0.0.1"
        writer.close()


async def test_a_client_that_reads_too_slowly_is_cut_off_and_one_that_reads_is_not() -> None:
    held = Held()
    held.body = bytes(32 << 20)
    held.may_response.set()
    async with await asyncio.get_running_loop().create_server(held.connect, "127.0.0.1", 0) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1000)
        writer.write(HEAD + b"\r\n")
        await until(lambda: bool(held.connections) and held.connections[0].flow.write_paused)
        (connection,) = held.connections
        for taken, seconds, is_cut_off in (
            (0, 29.0, False),
            (LEAST_RATE * 31, 30.0, False),
            (LEAST_RATE * 29, 30.0, True),
        ):
            connection._unsent = connection.unsent_bytes() + taken
            assert connection.pace(connection.since + seconds) == taken / seconds
            connection.check(connection.since + seconds)
            assert connection.transport.is_closing() == is_cut_off
        writer.close()
