import asyncio
import threading

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from service.config.limits import Limits
from service.context import mark_arrived, open_context
from service.errors import ServiceError
from service.http.body import _LARGE_BYTES, read_body
from service.lifecycle import Lifecycle

pytestmark = pytest.mark.anyio
LIMITS = Limits(body_bytes=10)


def request(receive: Receive, length: str | None = None, **more: str) -> Request:
    headers = [] if length is None else [(b"content-length", length.encode())]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in more.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    open_context(scope)
    return Request(scope, receive)


def sending(*chunks: bytes, disconnect: bool = False) -> Receive:
    messages: list[Message] = [
        {"type": "http.request", "body": chunk, "more_body": disconnect or index + 1 < len(chunks)}
        for index, chunk in enumerate(chunks)
    ]
    if disconnect:
        messages.append({"type": "http.disconnect"})
    queue = iter(messages)

    async def receive() -> Message:
        return next(queue)

    return receive


async def hang() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("length", [None, "10", "nonsense"])
async def test_chunks_are_joined(length: str | None) -> None:
    body = await read_body(request(sending(b"01234", b"", b"56789"), length), LIMITS, 20, Lifecycle())
    assert body == b"0123456789"


async def test_declared_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ServiceError) as caught:
        await read_body(request(hang, "11"), LIMITS, 20, Lifecycle())
    assert (caught.value.status, caught.value.code) == (413, "body_too_large")
    assert caught.value.headers["Connection"] == "close"


async def test_undeclared_length_is_counted() -> None:
    with pytest.raises(ServiceError) as caught:
        await read_body(request(sending(b"0123456789", b"0", b"never read")), LIMITS, 20, Lifecycle())
    assert (caught.value.status, caught.value.code) == (413, "body_too_large")
    assert caught.value.details["limit"] == 10


async def test_body_that_does_not_arrive_is_aborted() -> None:
    with pytest.raises(ServiceError) as caught:
        await read_body(request(hang), LIMITS, 0.01, Lifecycle())
    assert (caught.value.status, caught.value.code) == (408, "body_timeout")
    assert caught.value.headers["Connection"] == "close"


async def test_body_that_is_still_arriving_after_the_drain_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.lifecycle.LAST_SECONDS", 0.01)
    lifecycle = Lifecycle()
    reading = asyncio.create_task(read_body(request(hang), LIMITS, 20, lifecycle))
    await asyncio.sleep(0)  # lets the task start
    lifecycle.end_drain()
    with pytest.raises(ServiceError) as raised:
        await reading
    assert (raised.value.status, raised.value.code) == (503, "shutting_down")
    assert raised.value.headers["Connection"] == "close"


async def test_client_that_leaves_midway_is_distinguished() -> None:
    with pytest.raises(ClientDisconnect):
        await read_body(request(sending(b"012", disconnect=True)), LIMITS, 20, Lifecycle())


@pytest.mark.parametrize("encoding", ["gzip", "BR", "gzip, identity"])
async def test_packed_body_is_refused_unread(encoding: str) -> None:
    with pytest.raises(ServiceError) as caught:
        await read_body(request(hang, content_encoding=encoding), LIMITS, 20, Lifecycle())
    assert (caught.value.status, caught.value.code) == (415, "unsupported_encoding")
    assert caught.value.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("encoding", ["Identity", ""])
async def test_body_as_it_is_may_say_so(encoding: str) -> None:
    assert await read_body(request(sending(b"1"), content_encoding=encoding), LIMITS, 20, Lifecycle()) == b"1"


async def test_body_that_an_upgrade_would_swallow_is_refused() -> None:
    with pytest.raises(ServiceError) as caught:
        await read_body(
            request(hang, "9", connection="Upgrade, HTTP2-Settings", upgrade="h2c"), LIMITS, 20, Lifecycle()
        )
    assert (caught.value.status, caught.value.code) == (400, "upgrade_refused")
    assert caught.value.headers["Connection"] == "close"


async def test_body_that_has_arrived_needs_no_time_limit() -> None:
    arrived = request(sending(b"0123", b"456"))
    mark_arrived(arrived.scope)
    assert await read_body(arrived, LIMITS, 0, Lifecycle()) == b"0123456"


async def test_large_bodies_are_joined_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []

    def join(chunks: list[bytes]) -> bytes:
        threads.append(threading.current_thread())
        return b"".join(chunks)

    monkeypatch.setattr("service.http.body._join", join)
    half = bytes(range(256)) * (_LARGE_BYTES // 512)
    limits = Limits(body_bytes=4 * _LARGE_BYTES)
    assert await read_body(request(sending(half, half)), limits, 20, Lifecycle()) == 2 * half
    assert threads == []
    assert await read_body(request(sending(half, half, b"0")), limits, 20, Lifecycle()) == 2 * half + b"0"
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_large_bodies_are_joined_where_there_is_no_room_for_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object) -> bytes:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio, "to_thread", refuse)
    whole = bytes(_LARGE_BYTES + 1)
    limits = Limits(body_bytes=2 * _LARGE_BYTES)
    assert await read_body(request(sending(whole[:5], whole[5:])), limits, 20, Lifecycle()) == whole
