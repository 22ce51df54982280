"""Brings queues into the states that the tests of batches begin with."""

import asyncio
from typing import Any

from service.repository.loaded_model import LoadedModel
from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.stubs import (
    Client,
    StubGraph,
    call_of,
    rows,
    until,
)

Task = asyncio.Task[Any]


async def blocked(scheduler: Scheduler, graph: StubGraph, model: LoadedModel) -> Task:
    """Keep the one worker busy with a run of 1000; `graph.open` lets it go on."""
    graph.close()
    task = Client(scheduler).ask(call_of(model, rows(1000)))
    await graph.has_begun()
    return task


async def queue(scheduler: Scheduler, *calls: Any) -> list[Task]:
    """Send calls, each when the one before waits."""
    tasks = []
    for call in calls:
        count = scheduler.waiting()
        tasks.append(Client(scheduler).ask(call))
        await until(lambda count=count: scheduler.waiting() == count + 1)  # type: ignore[misc]  # bound early
    return tasks


async def decoded(scheduler: Scheduler, model: LoadedModel) -> None:
    """Return when a call waits for others to be run with."""

    def has_one() -> bool:
        queue = scheduler._queues.get(model)
        return queue is not None and queue._batcher.length == 1

    await until(lambda: has_one() and not scheduler.running())
