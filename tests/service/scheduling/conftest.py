import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from service.scheduling.scheduler import Scheduler
from tests.service.scheduling.stubs import Records, StubGraph, settings_of

Start = Callable[..., Scheduler]


@pytest.fixture
def graph() -> StubGraph:
    return StubGraph()


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture
async def start(graph: StubGraph, records: Records) -> AsyncIterator[Start]:
    """Starts schedulers, by settings; ends them with the test, and lets the runs of `graph` go on for that."""
    started: list[Scheduler] = []

    def make(**values: object) -> Scheduler:
        scheduler = Scheduler(settings_of(**values), [records])
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield make
    graph.open.set()
    for scheduler in started:
        await asyncio.to_thread(scheduler.close)
