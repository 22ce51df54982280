import asyncio
import logging
import socket

import pytest

from service.processes.messages import Call, Message, read_message
from service.processes.siblings import Duties, Siblings

pytestmark = pytest.mark.anyio


async def test_call_that_fails_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(call: Call) -> tuple[int, bytes]:
        raise RuntimeError(call.path)

    async def nothing() -> tuple[int, bytes]:
        return 200, b"{}"

    ended = asyncio.Event()
    ours, theirs = socket.socketpair()
    siblings = Siblings(theirs.detach(), 1)
    await siblings.connect(Duties(fail, nothing, ended.set, ended.set, ended.set))
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    writer.write(Call("POST", "/v2/logging").message(kind="call", number=5).pack())
    async with asyncio.timeout(20):
        with caplog.at_level(logging.ERROR):
            reply = await read_message(reader)
        writer.close()
        await ended.wait()
        assert await siblings.ask(Call("GET", "/metrics")) == [], "nobody is left to ask"
    assert reply == Message({"kind": "reply", "number": 5, "status": 500}, reply.data if reply else b"")
    assert "RuntimeError: /v2/logging" in caplog.text
