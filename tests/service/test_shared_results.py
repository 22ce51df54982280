"""Who asks gets a result that was made after he asked; those who come while one is made share the next one."""

import asyncio
import threading
from itertools import count

import pytest

from service.fairness import MANY, SharedResults
from tests.service.scheduling.stubs import SOON

pytestmark = pytest.mark.anyio


async def test_one_after_the_other_each_gets_a_result_of_its_own() -> None:
    results, numbers = SharedResults(), count()
    assert [await results.get("key", lambda: next(numbers)) for _ in range(50)] == [*range(50)]


@pytest.mark.parametrize("waiting", [1, MANY + 1, 1000])
async def test_who_comes_while_one_is_made_shares_the_next(waiting: int) -> None:
    results, numbers = SharedResults(), count()
    begun, goes_on = threading.Event(), threading.Event()

    def compute() -> int:
        number = next(numbers)
        if not number:
            begun.set()
            assert goes_on.wait(SOON)
        return number

    first = asyncio.create_task(results.get("key", compute))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(begun.wait, SOON)
    others = [asyncio.create_task(results.get("key", compute)) for _ in range(waiting)]
    assert await results.get("other key", lambda: "at once") == "at once"
    goes_on.set()
    assert await first == 0
    assert await asyncio.gather(*others) == [1] * waiting
    assert await results.get("key", compute) == 2  # also right after many shared one


async def test_a_result_reports_all_that_happened_before_it_was_asked_for() -> None:
    results, happened = SharedResults(), 0

    async def ask() -> bool:
        nonlocal happened
        happened += 1
        own = happened
        return await results.get("key", lambda: happened) >= own

    assert all(await asyncio.gather(*(ask() for _ in range(200))))


async def test_one_who_leaves_hurts_nobody() -> None:
    results, goes_on = SharedResults(), threading.Event()

    def compute() -> bool:
        return goes_on.wait(SOON)

    tasks = [asyncio.create_task(results.get("key", compute)) for _ in range(9)]
    await asyncio.sleep(0)
    tasks.pop(0).cancel()
    tasks.pop().cancel()
    goes_on.set()
    assert await asyncio.gather(*tasks) == [True] * 7


async def test_an_error_is_raised_for_all_who_share_it() -> None:
    results = SharedResults()

    def fail() -> None:
        raise ValueError("no")

    asked = [results.get("key", fail) for _ in range(MANY + 5)]
    got = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(error) for error in got] == [ValueError] * (MANY + 5)
    with pytest.raises(ValueError, match="no"):
        await results.get("key", fail)
