import asyncio

import pytest
from starlette.types import Message

from service.errors import ServiceError
from service.http import body_budget
from service.http.body_budget import BodyBudget, Reservation
from service.http.body_channel import BodyChannel

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_budget, "STEP", 10)


class Channel:
    """Sends chunks, and counts how many were asked for."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)
        self.asked = 0

    async def __call__(self) -> Message:
        self.asked += 1
        if not self._chunks:
            await asyncio.Event().wait()
        chunk = self._chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks)}


def test_room_is_taken_and_given_back() -> None:
    budget = BodyBudget(100)
    first, second = Reservation(budget, 60), Reservation(budget, 60)
    first.expect(55)
    second.expect(20)
    assert budget.used == 90
    with pytest.raises(ServiceError) as caught:
        second.expect(35)
    assert (caught.value.status, caught.value.code) == (503, "buffers_full")
    assert int(caught.value.headers["Retry-After"]) >= 1
    assert caught.value.headers["Connection"] == "close"
    assert budget.used == 90
    first.release()
    first.release()
    second.expect(35)
    assert budget.used == 45
    second.release()
    assert budget.used == 0


def test_promise_reserves_no_more_than_a_step() -> None:
    budget = BodyBudget(100)
    Reservation(budget, 1 << 40).expect(0)
    assert budget.used == 10


def test_body_larger_than_the_budget_is_taken_while_it_is_the_only_one() -> None:
    budget = BodyBudget(100)
    large = Reservation(budget, 1000)
    for received in range(0, 1001, 100):
        large.expect(received)
    assert budget.used == 1000
    with pytest.raises(ServiceError):
        Reservation(budget, 1).expect(0)
    large.release()
    Reservation(budget, 1).expect(0)


async def test_body_without_room_is_refused_unread() -> None:
    budget = BodyBudget(25)
    holder = Reservation(budget, 20)
    holder.expect(15)
    channel = Channel(b"0123456789")
    with pytest.raises(ServiceError):
        await BodyChannel(channel, Reservation(budget, 10))()
    assert channel.asked == 0


@pytest.mark.parametrize("sizes", [(8,), (4, 4)])
async def test_undeclared_body_is_counted_as_it_comes(sizes: tuple[int, ...]) -> None:
    budget = BodyBudget(25)
    Reservation(budget, 20).expect(10)
    incoming = BodyChannel(Channel(*(b"x" * size for size in sizes)), Reservation(budget, None))
    for _ in sizes[:-1]:
        await incoming()
    with pytest.raises(ServiceError):
        await incoming()
    assert budget.used == 20 + sum(sizes[:-1])


async def test_what_is_thrown_away_needs_no_room() -> None:
    budget = BodyBudget(25)
    Reservation(budget, 20).expect(10)
    incoming = BodyChannel(Channel(b"x" * 4, b"x" * 4), Reservation(budget, None))
    await incoming()
    await asyncio.wait_for(incoming.discard(), 20)
    assert budget.used == 20
