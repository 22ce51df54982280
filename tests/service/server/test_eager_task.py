"""Tasks that take their first step at once."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from service.server.eager_task import start_task

pytestmark = pytest.mark.anyio
variable = ContextVar("variable", default="outside")


async def started(coroutine: Coroutine[Any, None, None]) -> asyncio.Task[None]:
    """Start a coroutine in a callback of the event loop, as a connection does."""
    loop = asyncio.get_running_loop()
    task: asyncio.Future[asyncio.Task[None]] = loop.create_future()
    loop.call_soon(lambda: task.set_result(start_task(loop, coroutine)))
    return await task


async def test_first_step_is_taken_at_once_and_the_others_by_the_task() -> None:
    loop, steps = asyncio.get_running_loop(), []
    gate: asyncio.Future[str] = loop.create_future()

    async def run() -> None:
        steps.append("first")
        steps.append(await gate)

    def start() -> None:
        task = start_task(loop, run())
        assert steps == ["first"]
        ended.set_result(task)

    ended: asyncio.Future[asyncio.Task[None]] = loop.create_future()
    loop.call_soon(start)
    task = await ended
    gate.set_result("second")
    await task
    assert steps == ["first", "second"]


async def test_coroutine_runs_in_its_task_and_in_a_context_of_its_own() -> None:
    seen: list[Any] = []

    async def run() -> None:
        variable.set("inside")
        for _ in range(2):
            seen.append((asyncio.current_task(), variable.get()))
            async with asyncio.timeout(20):
                await asyncio.sleep(0)

    task = await started(run())
    await task
    assert seen == [(task, "inside")] * 2
    assert variable.get() == "outside"


async def nothing() -> None:
    """End at once."""


async def fail() -> None:
    """Fail at once."""
    raise ZeroDivisionError


async def test_how_the_first_step_ends_is_how_the_task_ends() -> None:
    await (await started(nothing()))
    with pytest.raises(ZeroDivisionError):
        await (await started(fail()))


@pytest.mark.parametrize("steps", [0, 1, 3])
async def test_cancelling_reaches_the_coroutine_wherever_it_waits(steps: int) -> None:
    reached = []

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            reached.append(True)

    task = await started(run())
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached == [True]


@pytest.mark.parametrize(("run", "error"), [(nothing, None), (fail, ZeroDivisionError)])
async def test_cancelling_a_task_that_has_ended_changes_nothing(
    run: Callable[[], Coroutine[Any, None, None]], error: type[Exception] | None
) -> None:
    loop = asyncio.get_running_loop()
    tasks: asyncio.Future[asyncio.Task[None]] = loop.create_future()

    def start() -> None:
        task = start_task(loop, run())
        task.cancel()
        tasks.set_result(task)

    loop.call_soon(start)
    task = await tasks
    await asyncio.wait([task])
    assert not task.cancelled()
    assert type(task.exception()) is (error or type(None))


async def test_within_a_task_no_step_is_taken() -> None:
    steps = []

    async def run() -> None:
        steps.append("first")

    task = start_task(asyncio.get_running_loop(), run())
    assert steps == []
    await task
    assert steps == ["first"]
