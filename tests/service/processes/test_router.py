import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from service.processes import router as module
from service.processes.child import Child
from service.processes.messages import Call, Message, Reply, call_of, read_message, unpack_replies
from service.processes.router import Router
from service.processes.slot import Slot

pytestmark = pytest.mark.anyio
LOAD = Call("POST", "/v2/repository/models/digits/load")
DONE = {"status": 200}


class Channel:
    """What a process is sent."""

    def __init__(self) -> None:
        self.sent = asyncio.StreamReader()
        self.closed = False

    def write(self, data: bytes) -> None:
        self.sent.feed_data(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class StandIn:
    """A process that answers nothing by itself.

    Args:
        number: of its slot.
        router: gets its messages.
    """

    def __init__(self, number: int, router: Router) -> None:
        slot = Slot(number, 3, "", (), 0, (), 0, False, False, (), 0)
        self.channel, self.says = Channel(), asyncio.StreamReader()
        self.child = Child(slot, cast("Any", None), cast("Any", self.channel), is_ready=True)
        self.listening = asyncio.create_task(self.child.listen(self.says, router.take))

    def say(self, message: Message) -> None:
        self.says.feed_data(message.pack())

    async def hear(self) -> Message:
        async with asyncio.timeout(20):
            message = await read_message(self.channel.sent)
        assert message is not None
        return message

    async def do(self, call: Call = LOAD) -> tuple[tuple[str, str], ...]:
        """Answer the next message, which is to be this call; returns its headers."""
        message = await self.hear()
        assert (message.head["kind"], message.head["call"]["path"]) == ("call", call.path)
        self.say(Message({"kind": "reply", "number": message.head["number"], **DONE}))
        return call_of(message).headers

    async def end(self) -> None:
        self.says.feed_eof()
        await self.listening


def start(count: int) -> tuple[Router, Sequence[StandIn]]:
    processes: list[StandIn] = []
    router = Router(lambda: [one.child for one in processes])
    processes += [StandIn(number, router) for number in range(count)]
    return router, processes


async def replies(process: StandIn) -> list[Reply]:
    message = await process.hear()
    assert message.head["kind"] == "replies"
    return unpack_replies(message.head["replies"], message.data)


async def test_process_that_ends_during_a_change_holds_up_none() -> None:
    _, (first, second, third) = start(3)
    first.say(LOAD.message(kind="change", number=1))
    await first.do()
    message = await second.hear()
    await third.end()
    second.say(Message({"kind": "reply", "number": message.head["number"], **DONE}))
    assert [reply.process for reply in await replies(first)] == [0, 1]


async def test_process_that_ends_before_its_change_holds_up_none() -> None:
    _, (first, second) = start(2)
    first.say(LOAD.message(kind="change", number=1))
    message = await first.hear()
    second.say(LOAD.message(kind="change", number=1))
    await second.end()
    first.say(Message({"kind": "reply", "number": message.head["number"], **DONE}))
    assert [reply.process for reply in await replies(first)] == [0]
    first.say(LOAD.message(kind="change", number=2))
    await first.do()
    assert [reply.process for reply in await replies(first)] == [0]


async def repeated(router: Router) -> list[tuple[str, bytes]]:
    """Return the changes that a process which starts now is told of."""
    late = StandIn(2, router)
    late.say(Message({"kind": "loaded"}))
    told = []
    while (message := await late.hear()).head["kind"] == "call":
        told.append((message.head["call"]["path"], message.data))
        late.say(Message({"kind": "reply", "number": message.head["number"], **DONE}))
    assert message.head["kind"] == "go on"
    return told


async def test_only_what_counts_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHANGES", 3)
    router, (first,) = start(1)
    unload = Call("POST", "/v2/repository/models/other/unload")
    settings = [Call("POST", "/v2/logging", body=body) for body in (b"a", b"b", b"a")]
    changes = [unload, *settings, *[LOAD] * 20]
    for number, change in enumerate(changes):
        first.say(change.message(kind="change", number=number))
        await first.do(change)
        assert len(await replies(first)) == 1
    assert await repeated(router) == [("/v2/logging", b"b"), ("/v2/logging", b"a"), (LOAD.path, b"")]
