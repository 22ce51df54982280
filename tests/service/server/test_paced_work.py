"""What clients have sent ahead is begun a few pieces at a time."""

import asyncio

import pytest

from service.server.paced_work import AT_A_TIME, PacedWork

pytestmark = pytest.mark.anyio


async def test_others_get_their_turn_between_the_pieces() -> None:
    turns, done = PacedWork(), list[int | str]()
    for number in range(3 * AT_A_TIME):
        turns.add(lambda number=number: done.append(number))  # type: ignore[misc]  # mypy infers no type for it
    for _ in range(3):
        await asyncio.sleep(0)
        done.append("other")
    numbers = list(range(3 * AT_A_TIME))
    first, second = numbers[:AT_A_TIME], numbers[AT_A_TIME : 2 * AT_A_TIME]
    assert done == [*first, "other", *second, "other", *numbers[2 * AT_A_TIME :], "other"]


async def test_what_is_added_later_is_begun_as_well() -> None:
    turns, done = PacedWork(), list[int]()
    for number in range(2):
        turns.add(lambda number=number: done.append(number))  # type: ignore[misc]
        await asyncio.sleep(0)
    assert done == [0, 1]
