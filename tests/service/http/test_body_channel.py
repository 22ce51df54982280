import asyncio

import pytest
from starlette.types import Message

from service.http import body_channel as module
from service.http.body_budget import BodyBudget, Reservation
from service.http.body_channel import BodyChannel

pytestmark = pytest.mark.anyio


class Channel:
    """Sends chunks, and then nothing more or the end."""

    def __init__(self, *messages: Message) -> None:
        self.messages = list(messages)

    async def __call__(self) -> Message:
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)


def chunk(more: bool) -> Message:
    return {"type": "http.request", "body": b"x", "more_body": more}


@pytest.mark.parametrize("end", [chunk(False), {"type": "http.disconnect"}])
async def test_rest_of_a_body_is_thrown_away(end: Message) -> None:
    after: Message = {"type": "after"}
    channel = Channel(chunk(True), chunk(True), end, after)
    incoming = BodyChannel(channel, Reservation(BodyBudget(9), None))
    assert await incoming() == chunk(True)
    await asyncio.wait_for(incoming.discard(), 20)
    assert channel.messages == [after]
    await asyncio.wait_for(incoming.discard(), 20)
    assert channel.messages == [after]


async def test_body_without_an_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER_SECONDS", 0.01)
    await asyncio.wait_for(BodyChannel(Channel(chunk(True)), Reservation(BodyBudget(9), None)).discard(), 20)
