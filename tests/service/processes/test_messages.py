import asyncio

import pytest

from service.processes.messages import Call, Reply, call_of, pack_replies, read_message, unpack_replies
from service.processes.slot import Slot, take_slot

pytestmark = pytest.mark.anyio


async def test_calls_arrive_as_they_were_sent() -> None:
    call = Call("POST", "/v2/é", "a=b", (("content-type", "application/json"),), b"{}\0")
    reader = asyncio.StreamReader()
    reader.feed_data(call.message(kind="call", number=7).pack() * 2)
    reader.feed_eof()
    for _ in range(2):
        message = await read_message(reader)
        assert message is not None
        assert (message.head["kind"], message.head["number"], call_of(message)) == ("call", 7, call)
    assert await read_message(reader) is None


async def test_message_that_ends_too_early_is_the_end() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(Call("GET", "/").message(kind="call").pack()[:-1])
    reader.feed_eof()
    assert await read_message(reader) is None


def test_replies_are_told_apart() -> None:
    replies = [Reply(0, 200, b"one"), Reply(2, 404, b""), Reply(1, 200, b"three")]
    assert unpack_replies(*pack_replies(replies)) == replies


def test_slot_is_taken_once() -> None:
    slot = Slot(1, 2, "http://127.0.0.1:1", (3, 4), 5, (6, 7, 8), 9, True, False, (10, 11), 12)
    environment = slot.variables()
    assert take_slot(environment) == slot
    assert (environment, take_slot(environment)) == ({}, None)
    assert slot.descriptors == (3, 4, 10, 11, 5, 6, 7, 8, 9, 12)
