"""Callbacks after one delay: in order, each once, and none that was withdrawn."""

import asyncio
from collections.abc import Callable

import pytest

from service.scheduling.delay_queue import DelayQueue

pytestmark = pytest.mark.anyio

SECONDS = 0.01


async def test_callbacks_come_in_order_and_none_that_was_withdrawn() -> None:
    queue, called, done = DelayQueue(SECONDS), list[int](), asyncio.Event()
    loop = asyncio.get_running_loop()
    began = loop.time()
    callbacks: list[Callable[[], None]] = [lambda number=number: called.append(number) for number in range(5)]  # type: ignore[misc]
    for callback in callbacks:
        queue.add(callback)
    queue.discard(callbacks[0])
    queue.discard(callbacks[3])
    queue.discard(callbacks[3])
    queue.add(done.set)
    await done.wait()
    assert called == [1, 2, 4]
    assert loop.time() - began >= SECONDS * 0.8


async def test_the_timer_starts_again_for_callbacks_that_come_later() -> None:
    queue = DelayQueue(SECONDS)
    for _ in range(3):
        done = asyncio.Event()
        queue.add(done.set)
        await asyncio.wait_for(done.wait(), 10)
    first, second = asyncio.Event(), asyncio.Event()
    queue.add(first.set)
    queue.add(lambda: queue.add(second.set))
    await asyncio.wait_for(second.wait(), 10)
    assert first.is_set()


async def test_a_timer_that_nobody_needs_is_cancelled() -> None:
    queue = DelayQueue(3600.0, keeps_timer=False)
    for _ in range(3):
        queue.add(print)
        timer = queue._timer
        assert timer is not None
        queue.discard(print)
        assert timer.cancelled()
    kept = DelayQueue(3600.0)
    kept.add(print)
    kept.discard(print)
    assert kept._timer is not None
    assert not kept._timer.cancelled()
    kept._timer.cancel()


async def test_a_callback_that_fails_does_not_keep_the_others_from_being_called() -> None:
    queue, done, failures = DelayQueue(SECONDS), asyncio.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))

    def fail() -> None:
        raise ValueError("on purpose")

    queue.add(fail)
    queue.add(done.set)
    await asyncio.wait_for(done.wait(), 10)
    assert [str(failure) for failure in failures] == ["on purpose"]


def test_another_event_loop_has_its_own_timer() -> None:
    queue = DelayQueue(60.0)

    async def leave() -> None:
        queue.add(leave_behind)
        queue.discard(leave_behind)

    def leave_behind() -> None:
        pytest.fail("it was withdrawn")

    async def wait() -> None:
        done = asyncio.Event()
        queue.seconds = SECONDS
        queue.add(done.set)
        await asyncio.wait_for(done.wait(), 10)

    asyncio.run(leave())
    asyncio.run(wait())


async def test_a_callback_that_adds_another_delays_none(monkeypatch: pytest.MonkeyPatch) -> None:
    delays, seen, done = list[float](), list[float](), asyncio.Event()
    start_timer = DelayQueue._start_timer

    def note_delay(queue: DelayQueue, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        delays.append(seconds)
        start_timer(queue, loop, seconds)

    def follow() -> None:
        seen.extend(delays)
        done.set()

    monkeypatch.setattr(DelayQueue, "_start_timer", note_delay)
    queue = DelayQueue(SECONDS)
    queue.add(lambda: queue.add(print))
    queue.add(follow)
    await asyncio.wait_for(done.wait(), 10)
    queue.discard(print)
    assert seen.count(SECONDS) == 1, "the delay began anew for a callback that was there before"
