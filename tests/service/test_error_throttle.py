"""503 responses to a client that retries at once are delayed; those to others are not."""

import asyncio

import pytest

from service import fairness
from service.fairness import BURST, MAX_SECONDS, RATE, ErrorThrottle

pytestmark = pytest.mark.anyio


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays, none of which really passes."""
    times: list[float] = []

    async def sleep(seconds: float) -> None:
        times.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return times


async def test_a_burst_is_not_delayed_and_later_responses_ever_more(slept: list[float]) -> None:
    throttle = ErrorThrottle()
    for _ in range(BURST):
        await throttle.wait("a")
    assert slept == []
    for _ in range(20):
        await throttle.wait("a")
    assert 10 / RATE < slept[-1] <= 20 / RATE
    assert slept[3] < slept[-1]
    await throttle.wait("b")
    assert len(slept) == 20  # another client has its own burst


async def test_no_delay_is_long(slept: list[float]) -> None:
    throttle = ErrorThrottle()
    for _ in range(BURST + 3 * round(RATE * MAX_SECONDS)):
        await throttle.wait("a")
    assert max(slept) <= MAX_SECONDS


async def test_the_number_of_delayed_responses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fairness, "MAX_WAITING", 5)
    throttle = ErrorThrottle()
    tasks = [asyncio.create_task(throttle.wait("a")) for _ in range(BURST + 20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert sum(not task.done() for task in tasks) == 5
    for task in tasks:
        task.cancel()
