"""What may wait is begun a little at a time."""

import asyncio
from collections.abc import Callable

import pytest

from service.server import throttle
from service.server.throttle import BURST_SECONDS, ITERATIONS, Throttle

pytestmark = pytest.mark.anyio


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Have a clock that moves when it is reported to; returns what moves it."""
    now = 0.0

    def move(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(throttle, "perf_counter", lambda: now)
    return move


async def test_others_get_their_turn_between_the_pieces(pass_time: Callable[[float], None]) -> None:
    turns, done = Throttle(), list[int | str]()

    def work(number: int) -> None:
        pass_time(0.4 * BURST_SECONDS)
        done.append(number)

    for number in range(7):
        turns.add(lambda number=number: work(number))  # type: ignore[misc]  # mypy infers no type for it
    for _ in range(2 * ITERATIONS + 1):
        await asyncio.sleep(0)
        done.append("other")
    others = ["other"] * ITERATIONS
    assert done == [0, 1, 2, *others, 3, 4, 5, *others, 6, "other"]


async def test_a_piece_that_takes_longer_is_begun_alone(pass_time: Callable[[float], None]) -> None:
    turns, done = Throttle(), list[int]()

    def work() -> None:
        pass_time(5 * BURST_SECONDS)
        done.append(0)

    for _ in range(3):
        turns.add(work)
    for count in (1, 2, 3):
        await asyncio.sleep(0)
        assert len(done) == count
        for _ in range(ITERATIONS - 1):
            await asyncio.sleep(0)


async def test_what_is_added_later_is_begun_as_well() -> None:
    turns, done = Throttle(), list[int]()
    for number in range(2):
        turns.add(lambda number=number: done.append(number))  # type: ignore[misc]
        await asyncio.sleep(0)
    assert done == [0, 1]


@pytest.mark.usefixtures("pass_time")  # a real millisecond may pass between two pieces
async def test_a_piece_that_fails_holds_up_no_other() -> None:
    turns, done, failures = Throttle(), list[int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
    turns.add(lambda: done[0])  # type: ignore[arg-type]  # fails
    for number in (1, 2):
        turns.add(lambda number=number: done.append(number))  # type: ignore[misc]
    for _ in range(2 * ITERATIONS):
        await asyncio.sleep(0)
    assert done == [1, 2]
    assert [type(error) for error in failures] == [IndexError]
