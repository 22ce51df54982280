"""A stream that begins at the moment when the server drains."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from service.context import RequestContext
from service.grpc.front import Incoming
from service.grpc.streaming import Streams
from service.lifecycle import Lifecycle

pytestmark = pytest.mark.anyio


class Silent:
    """A client that sends nothing."""

    async def read(self) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_a_stream_ends_however_far_it_has_come(steps: int) -> None:
    lifecycle = Lifecycle()
    front: Any = SimpleNamespace(services=SimpleNamespace(lifecycle=lifecycle), unread=None)
    client: Any = Silent()
    streams = Streams(front)
    stream = asyncio.create_task(streams._exchange(Incoming(client, RequestContext("r"))))
    for _ in range(steps):
        await asyncio.sleep(0)
    lifecycle.drain()
    streams.drain()
    await asyncio.wait_for(stream, 20)
