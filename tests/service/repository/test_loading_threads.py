import asyncio
import threading
from contextvars import ContextVar

import pytest

from service.repository.loading_threads import LoadingThreads

pytestmark = pytest.mark.anyio

SOON = 20
number: ContextVar[int] = ContextVar("number")


class Held:
    """A function that runs until the test lets it end."""

    def __init__(self) -> None:
        self.entered, self.gate = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.gate.wait(SOON)
        return "done"


async def test_function_runs_on_another_thread_in_the_context_of_its_caller() -> None:
    threads = LoadingThreads(1)
    number.set(7)
    assert await threads.run(lambda: (number.get(), threading.current_thread().name[:6])) == (7, "loader")
    with pytest.raises(IndexError):
        await threads.run(lambda: list[int]().pop())
    threads.abort(ValueError())


async def test_those_who_wait_and_those_who_come_are_refused() -> None:
    threads, running, queued = LoadingThreads(1), Held(), Held()
    calls = [asyncio.create_task(threads.run(function)) for function in (running, queued)]
    assert await asyncio.to_thread(running.entered.wait, SOON)
    threads.abort(ValueError("over"))
    for call in calls:
        with pytest.raises(ValueError, match="over"):
            await call
    with pytest.raises(ValueError, match="over"):
        await threads.run(Held())
    running.gate.set()
    assert not queued.entered.is_set()


async def test_caller_that_is_cancelled_gets_an_error() -> None:
    threads, held = LoadingThreads(1), Held()
    call = asyncio.create_task(threads.run(held))
    assert await asyncio.to_thread(held.entered.wait, SOON)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    held.gate.set()
    threads.abort(ValueError())
