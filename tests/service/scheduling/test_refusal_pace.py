"""A client that is refused again and again waits for each answer, and others do not."""

import asyncio

import pytest

from service.scheduling import refusal_pace
from service.scheduling.refusal_pace import BURST, MOST_SECONDS, RATE, RefusalPace

pytestmark = pytest.mark.anyio


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was waited, each time; nobody really waits."""
    times: list[float] = []

    async def sleep(seconds: float) -> None:
        times.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return times


async def test_the_first_refusals_are_answered_at_once_and_the_next_ever_later(slept: list[float]) -> None:
    pace = RefusalPace()
    for _ in range(BURST):
        await pace.wait("a")
    assert slept == []
    for _ in range(20):
        await pace.wait("a")
    assert 10 / RATE < slept[-1] <= 20 / RATE
    assert slept[3] < slept[-1]
    await pace.wait("b")
    assert len(slept) == 20  # another client does not wait for this one's


async def test_nobody_waits_long(slept: list[float]) -> None:
    pace = RefusalPace()
    for _ in range(BURST + 3 * round(RATE * MOST_SECONDS)):
        await pace.wait("a")
    assert max(slept) <= MOST_SECONDS


async def test_where_many_wait_the_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusal_pace, "MOST_WAITING", 5)
    pace = RefusalPace()
    tasks = [asyncio.create_task(pace.wait("a")) for _ in range(BURST + 20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(not task.done() for task in tasks) == 5
    for task in tasks:
        task.cancel()
