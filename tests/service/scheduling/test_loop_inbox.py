"""What threads have an event loop do: all of it, in order, on the loop's thread."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from service.scheduling.loop_inbox import LoopInbox

pytestmark = pytest.mark.anyio

COUNT = 2000
THREADS = 4


@pytest.fixture(params=["eventfd", "threadsafe"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "threadsafe":
        monkeypatch.delattr(os, "eventfd", raising=False)
    return str(request.param)


async def test_calls_of_all_threads_come_in_order_on_the_thread_of_the_loop(how: str) -> None:
    inbox, done = LoopInbox(asyncio.get_running_loop()), asyncio.Event()
    got: dict[int, list[int]] = {number: [] for number in range(THREADS)}
    places = set[int]()

    def take(thread: int, number: int) -> None:
        places.add(threading.get_ident())
        got[thread].append(number)
        if sum(map(len, got.values())) == COUNT * THREADS:
            done.set()

    def send(thread: int) -> None:
        for number in range(COUNT):
            inbox.call(take, thread, number)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    await asyncio.wait_for(done.wait(), 60)
    for thread in threads:
        thread.join()
    inbox.close()
    assert all(numbers == list(range(COUNT)) for numbers in got.values())
    assert places == {threading.get_ident()}, how


async def test_a_loop_that_sleeps_is_woken_each_time(how: str) -> None:
    inbox = LoopInbox(asyncio.get_running_loop())
    for _ in range(5):
        done = asyncio.Event()
        thread = threading.Thread(target=inbox.call, args=(done.set,))
        thread.start()
        await asyncio.wait_for(done.wait(), 10)
        thread.join()
    inbox.close()
    assert how


async def test_what_is_left_is_called_when_it_is_closed() -> None:
    inbox, called = LoopInbox(asyncio.get_running_loop()), list[str]()
    inbox.call(called.append, "first")
    inbox.call(called.append, "second")
    inbox.close()
    inbox.close()
    await asyncio.sleep(0)
    assert called == ["first", "second"]


async def test_no_file_descriptor_is_left_open() -> None:
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.glob("*")))
    for _ in range(20):
        LoopInbox(asyncio.get_running_loop()).close()
    await asyncio.sleep(0)
    assert len(list(descriptors.glob("*"))) <= before


async def test_one_that_fails_keeps_none_from_being_called(how: str) -> None:
    loop, errors, done = asyncio.get_running_loop(), list[object](), asyncio.Event()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    inbox, error = LoopInbox(loop), RuntimeError(how)

    def fail() -> None:
        raise error

    inbox.call(fail)
    inbox.call(done.set)
    await asyncio.wait_for(done.wait(), 10)
    inbox.close()
    assert errors == [error]
