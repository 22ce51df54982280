import asyncio

import pytest
from starlette.types import Message

from service.errors import ServiceError
from service.http import body as module
from service.http.body import BodyBudget, BodyChannel, Reservation

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


async def test_body_that_stalls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", 0.01)
    budget = BodyBudget(9)
    incoming = BodyChannel(Channel(chunk(True)), Reservation(budget, 5))
    await incoming()
    with pytest.raises(ServiceError) as caught:
        await asyncio.wait_for(incoming(), 20)
    assert (caught.value.status, caught.value.code) == (408, "body_timeout")


async def test_the_end_of_the_client_is_waited_for_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STALL_SECONDS", 0.0)
    end: Message = {"type": "http.disconnect"}
    incoming = BodyChannel(Channel(chunk(False), end), Reservation(BodyBudget(9), 1), is_whole=True)
    assert await incoming() == chunk(False)
    assert await incoming() == end
