"""Responses leave in as few pieces as they can."""

import asyncio
from collections.abc import Iterable

import pytest

from service.server.transport import CoalescingTransport

pytestmark = pytest.mark.anyio


class Recorder(asyncio.Transport):
    """Keeps what is sent, one entry per system call."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_open = True
        self.unread = 0
        self.lingered = 0

    def get_write_buffer_size(self) -> int:
        return self.unread

    def linger(self) -> None:
        self.lingered += 1

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.sent.append(b"".join(list_of_data))

    def close(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open


async def test_head_and_body_leave_together() -> None:
    recorder = Recorder()
    transport = CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger)
    transport.write(b"head ")
    assert recorder.sent == []
    transport.write(b"body")
    await asyncio.sleep(0)
    assert recorder.sent == [b"head body"]


async def test_what_nothing_follows_leaves_by_itself() -> None:
    recorder = Recorder()
    transport = CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger)
    transport.write(b"continue")
    await asyncio.sleep(0)
    assert recorder.sent == [b"continue"]
    transport.write(b"")
    await asyncio.sleep(0)
    assert recorder.sent == [b"continue"]


async def test_nothing_is_lost_at_the_end() -> None:
    recorder = Recorder()
    transport = CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger)
    transport.write(b"last")
    transport.close()
    assert recorder.sent == [b"last"]
    assert transport.is_closing()


async def test_order_is_kept() -> None:
    recorder = Recorder()
    transport = CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger)
    transport.write(b"a")
    transport.writelines([b"b", b"c"])
    transport.write(b"d")
    transport.write(b"e")
    transport.write(b"f")
    await asyncio.sleep(0)
    assert b"".join(recorder.sent) == b"abcdef"


async def test_what_comes_for_a_client_that_has_left_is_dropped() -> None:
    recorder = Recorder()
    transport = CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger)
    transport.write(b"held")
    recorder.is_open = False
    await asyncio.sleep(0)
    transport.write(b"head ")
    transport.write(b"body")
    transport.writelines([b"more"])
    await asyncio.sleep(0)
    transport.close()
    assert recorder.sent == []


async def test_a_client_that_has_not_read_yet_when_the_connection_is_closed_is_reported() -> None:
    recorder = Recorder()
    CoalescingTransport(recorder, asyncio.get_running_loop(), recorder.linger).close()
    assert recorder.lingered == 0
    slow = Recorder()
    slow.unread = 1
    transport = CoalescingTransport(slow, asyncio.get_running_loop(), slow.linger)
    transport.close()
    transport.close()
    assert slow.lingered == 1
