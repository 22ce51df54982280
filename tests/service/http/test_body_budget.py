import asyncio

import pytest
from starlette.types import Message

from service.context import RequestContext
from service.errors import ServiceError
from service.http import body as module
from service.http.body import BodyBudget, BodyChannel, Reservation

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP", 0)


class Channel:
    """Sends chunks, and counts how many were asked for."""

    def __init__(self, *chunks: bytes, never_ends: bool = False) -> None:
        self._chunks = list(chunks)
        self._never_ends = never_ends
        self.asked = 0

    async def __call__(self) -> Message:
        self.asked += 1
        if not self._chunks:
            await asyncio.Event().wait()
        chunk = self._chunks.pop(0)
        return {"type": "http.request", "body": chunk, "more_body": self._never_ends or bool(self._chunks)}


class Clock:
    """Time that passes when it is reported to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    known = Clock()
    monkeypatch.setattr(module, "monotonic", known)
    return known


async def arriving(budget: BodyBudget, declared: int | None, received: int, client: str = "") -> Reservation:
    """Return the reservation of a body of which a part has arrived, and that is waited for."""
    body = Reservation(budget, declared, RequestContext("r", client=client))
    async with asyncio.timeout(60) as deadline:
        body.begin(deadline)
    body.pause()
    body.expect(received)
    return body


def test_room_is_taken_and_given_back() -> None:
    budget = BodyBudget(100)
    first, second = Reservation(budget, 60), Reservation(budget, 60)
    first.expect(60)
    second.expect(30)
    assert budget.used == 90
    with pytest.raises(ServiceError) as caught:
        second.expect(45)
    assert (caught.value.status, caught.value.code) == (503, "buffers_full")
    assert int(caught.value.headers["Retry-After"]) >= 1
    assert caught.value.headers["Connection"] == "close"
    assert budget.used == 90
    first.release()
    first.release()
    second.expect(45)
    assert budget.used == 45
    second.release()
    assert budget.used == 0


async def test_promise_reserves_nothing() -> None:
    budget = BodyBudget(100)
    for _ in range(1000):
        await arriving(budget, 1 << 40, 0)
    assert budget.used == 0
    (await arriving(budget, 100, 0)).expect(100)


async def test_the_slowest_body_gives_way(clock: Clock) -> None:
    budget = BodyBudget(100)
    slow, slower = await arriving(budget, 90, 20), await arriving(budget, 90, 10)
    clock.now += 1
    young = await arriving(budget, 90, 5)
    slow.expect(50)
    whole = Reservation(budget, 35)
    whole.expect(35)
    assert budget.used == 100
    late = await arriving(budget, 90, 0)
    late.expect(5)
    assert (slower.refusal is None, slower.held, young.held, slow.held) == (False, 0, 5, 50)
    assert budget.used == 95
    late.expect(20)
    assert slow.refusal is not None
    assert (young.refusal, whole.held, budget.used) == (None, 35, 60)
    with pytest.raises(ServiceError):
        slow.expect(60)


async def test_the_slowest_body_finds_no_room_itself(clock: Clock) -> None:
    budget = BodyBudget(100)
    slow, fast = await arriving(budget, None, 10), await arriving(budget, None, 80)
    clock.now += 2
    with pytest.raises(ServiceError):
        slow.expect(40)
    assert (fast.refusal, budget.used) == (None, 90)


async def test_body_that_has_arrived_does_not_give_way(clock: Clock) -> None:
    budget = BodyBudget(100)
    body = await arriving(budget, 90, 90)
    body.complete()
    clock.now += 60
    with pytest.raises(ServiceError):
        Reservation(budget, 20).expect(20)
    assert body.refusal is None


async def test_body_that_gives_way_is_waited_for_no_longer(clock: Clock) -> None:
    budget = BodyBudget(100)
    stalled = BodyChannel(Channel(b"x" * 90, b"y", never_ends=True), Reservation(budget, 200))
    for _ in range(2):
        await stalled()
    waiting = asyncio.create_task(stalled())
    await asyncio.sleep(0)
    clock.now += 2
    Reservation(budget, 50).expect(50)
    with pytest.raises(ServiceError) as caught:
        await asyncio.wait_for(waiting, 20)
    assert caught.value.code == "buffers_full"
    assert budget.used == 50


def test_body_larger_than_the_budget_is_taken_while_it_is_the_only_one() -> None:
    budget = BodyBudget(100)
    large = Reservation(budget, 1000)
    for received in range(0, 1001, 100):
        large.expect(received)
    assert budget.used == 1000
    with pytest.raises(ServiceError):
        Reservation(budget, 1).expect(1)
    large.release()
    Reservation(budget, 1).expect(1)


async def test_latest_bodies_of_the_client_that_holds_most_give_way(clock: Clock) -> None:
    budget = BodyBudget(100)
    theirs = []
    for _ in range(4):
        theirs.append(await arriving(budget, None, 20, "heavy"))
        clock.now += 0.1
    mine = await arriving(budget, None, 15, "light")
    mine.expect(40)
    assert [body.refusal is not None for body in theirs] == [False, False, False, True]
    assert budget.used == 100
    mine.expect(50)
    assert [body.refusal is not None for body in theirs] == [False, False, True, True]
    with pytest.raises(ServiceError):  # it holds more than the other now
        mine.expect(80)
    with pytest.raises(ServiceError):
        theirs[0].expect(61)
    assert [body.held for body in (mine, *theirs)] == [50, 20, 20, 0, 0]


def of(client: str) -> RequestContext:
    return RequestContext("r", client=client)


async def test_client_that_holds_less_goes_beyond_the_limit() -> None:
    budget = BodyBudget(80)
    heavy = Reservation(budget, None, of("heavy"))
    heavy.expect(80)
    heavy.complete()
    with pytest.raises(ServiceError):
        Reservation(budget, None, of("heavy")).expect(1)
    light = await arriving(budget, 4, 4, "light")
    another = await arriving(budget, 6, 6, "another")
    assert budget.used == 90
    with pytest.raises(ServiceError):
        await arriving(budget, 1, 1, "third")
    for body in (light, another, heavy):
        body.release()
    assert (budget.used, budget._holding) == (0, set())


async def test_who_sends_a_body_is_known_by_the_time_it_is_read() -> None:
    budget, context = BodyBudget(80), of("address")
    body = Reservation(budget, 80, context)
    context.client = b"key"
    body.expect(80)
    with pytest.raises(ServiceError):
        Reservation(budget, None, context).expect(1)
    Reservation(budget, None, of("address")).expect(10)


async def test_a_step_is_reserved_once_a_body_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP", 10)
    budget = BodyBudget(100)
    assert (await arriving(budget, 1 << 40, 0)).held == 0
    assert (await arriving(budget, 1 << 40, 1)).held == 11
    assert (await arriving(budget, 30, 25)).held == 30
    assert (await arriving(budget, None, 5)).held == 5


async def test_body_without_room_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STEP", 10)
    budget = BodyBudget(25)
    holder = Reservation(budget, 20)
    holder.expect(20)
    channel = Channel(b"0123456789")
    with pytest.raises(ServiceError):
        await BodyChannel(channel, Reservation(budget, 10))()
    assert channel.asked == 0


@pytest.mark.parametrize("sizes", [(8,), (4, 4)])
async def test_undeclared_body_is_counted_as_it_comes(sizes: tuple[int, ...]) -> None:
    budget = BodyBudget(25)
    Reservation(budget, 20).expect(20)
    incoming = BodyChannel(Channel(*(b"x" * size for size in sizes)), Reservation(budget, None))
    for _ in sizes[:-1]:
        await incoming()
    with pytest.raises(ServiceError):
        await incoming()
    assert budget.used == 20 + sum(sizes[:-1])


async def test_what_is_thrown_away_needs_no_room() -> None:
    budget = BodyBudget(25)
    Reservation(budget, 20).expect(20)
    incoming = BodyChannel(Channel(b"x" * 4, b"x" * 4), Reservation(budget, None))
    await incoming()
    await asyncio.wait_for(incoming.discard(), 20)
    assert budget.used == 20
