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
    """Starts dispatchers, by settings; ends them with the test, and lets the runs of `graph` go on for that."""
    started: list[Scheduler] = []

    def make(**values: object) -> Scheduler:
        dispatcher = Scheduler(settings_of(**values), [records])
        dispatcher.start()
        started.append(dispatcher)
        return dispatcher

    yield make
    graph.open.set()
    for dispatcher in started:
        await asyncio.to_thread(dispatcher.close)
