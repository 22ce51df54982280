"""Clients share one thread round-robin."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from service.errors import ServiceError
from service.fairness import FairExecutor
from tests.service.scheduling.stubs import SOON

pytestmark = pytest.mark.anyio


class Thread:
    """What is done on the thread, which goes on when it is let."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.goes_on = threading.Event()

    def hold(self) -> None:
        assert self.goes_on.wait(SOON)

    def note(self, name: str) -> str:
        self.done.append(name)
        return name.upper()


async def test_a_client_with_much_to_do_delays_another_by_one_body() -> None:
    executor, thread = FairExecutor("test"), Thread()
    held = asyncio.create_task(executor.run("a", thread.hold, SOON))
    names = ("a1", "a2", "a3", "b1", "c1", "b2")
    tasks = [asyncio.create_task(executor.run(name[0], partial(thread.note, name), SOON)) for name in names]
    await asyncio.sleep(0)
    thread.goes_on.set()
    await held
    assert await asyncio.gather(*tasks) == ["A1", "A2", "A3", "B1", "C1", "B2"]
    assert thread.done == ["b1", "c1", "a1", "b2", "a2", "a3"]


async def test_several_threads_work_at_the_same_time() -> None:
    executor, both = FairExecutor("test", 2), threading.Barrier(2)
    wait = partial(both.wait, SOON)
    await asyncio.gather(*(executor.run(client, wait, SOON) for client in "ab"))
    executor.close()


async def test_one_is_at_work_at_a_time_and_errors_are_passed_on() -> None:
    def fail() -> None:
        raise ServiceError(400, "invalid_json", "no")

    executor, thread = FairExecutor("test"), Thread()
    held = asyncio.create_task(executor.run("a", thread.hold, SOON))
    failing = asyncio.create_task(executor.run("b", fail, SOON))
    await asyncio.sleep(0)
    assert not failing.done()
    thread.goes_on.set()
    await held
    with pytest.raises(ServiceError, match="no"):
        await failing
    assert await executor.run("b", partial(thread.note, "next"), SOON) == "NEXT"


async def test_what_nobody_waits_for_any_more_is_not_done() -> None:
    executor, thread = FairExecutor("test"), Thread()
    held = asyncio.create_task(executor.run("a", thread.hold, SOON))
    late = asyncio.create_task(executor.run("b", partial(thread.note, "late"), 0))
    gone = asyncio.create_task(executor.run("c", partial(thread.note, "gone"), SOON))
    last = asyncio.create_task(executor.run("c", partial(thread.note, "last"), SOON))
    await asyncio.sleep(0)
    gone.cancel()
    thread.goes_on.set()
    await held
    with pytest.raises(ServiceError) as caught:
        await late
    assert (caught.value.status, caught.value.code) == (504, "timeout")
    assert await last == "LAST"
    assert thread.done == ["last"]


async def test_a_thread_that_cannot_be_started_is_memory_that_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    executor, thread = FairExecutor("test"), Thread()
    with monkeypatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", fail)
        with pytest.raises(MemoryError):
            await executor.run("a", partial(thread.note, "never"), SOON)
    assert await executor.run("a", partial(thread.note, "now"), SOON) == "NOW"
    assert thread.done == ["now"]
