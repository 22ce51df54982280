"""Those who ask for the same share a result where they are many, and get one of their own where they are few."""

import asyncio
import threading
from itertools import count

import pytest

from service.scheduling import recent_results
from service.scheduling.recent_results import FREE, RecentResults
from tests.service.scheduling.stubs import SOON

pytestmark = pytest.mark.anyio


async def test_few_get_results_of_their_own_and_many_share_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent_results, "SECONDS", 3600.0)
    results, numbers = RecentResults(), count()
    got = [await results.get("key", lambda: next(numbers)) for _ in range(FREE + 3)]
    assert got == [*range(FREE), FREE - 1, FREE - 1, FREE - 1]
    assert await results.get("other", lambda: "another") == "another"


async def test_a_result_is_shared_for_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_results, "SECONDS", 0.0)
    results, numbers = RecentResults(), count()
    got = [await results.get("key", lambda: next(numbers)) for _ in range(FREE + 3)]
    assert got == list(range(FREE + 3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not results._recent  # nothing is kept that nobody would get


async def test_what_takes_long_is_waited_for_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_results, "SECONDS", 0.0)
    monkeypatch.setattr(recent_results, "FREE", 1)
    results, numbers, goes_on = RecentResults(), count(), threading.Event()

    def compute() -> int:
        assert goes_on.wait(SOON)
        return next(numbers)

    tasks = [asyncio.create_task(results.get("key", compute)) for _ in range(9)]
    await asyncio.sleep(0)
    tasks.pop().cancel()  # one leaves, and the others are not hurt
    goes_on.set()
    assert await asyncio.gather(*tasks) == [0] * 8


async def test_an_error_is_raised_for_all_who_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_results, "SECONDS", 3600.0)
    results = RecentResults()

    def fail() -> None:
        raise ValueError("no")

    for _ in range(FREE + 2):
        with pytest.raises(ValueError, match="no"):
            await results.get("key", fail)
