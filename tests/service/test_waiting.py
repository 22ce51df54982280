"""What ends the wait for a job: its result, its deadline, its client, its own request."""

import asyncio
import threading
from collections.abc import Iterator
from time import monotonic

import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from engine import RunStoppedError
from service.errors import ServiceError
from service.job import Job
from service.scheduler import Scheduler
from service.waiting import result_of

pytestmark = pytest.mark.anyio
SOON = 20.0


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(workers=1, threads=1, queue_size=4)
    made.start()
    yield made
    made.close()


async def stay() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def leave() -> Message:
    return {"type": "http.disconnect"}


def leave_after(*types: str) -> Receive:
    messages = iter([*types, "http.disconnect"])

    async def receive() -> Message:
        return {"type": next(messages)}

    return receive


class Layers:
    """Work that, like a run, asks before each of its layers whether to go on."""

    def __init__(self) -> None:
        self.begun, self.open, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.reason: str | None = None

    def __call__(self, job: Job[str]) -> str:
        self.begun.set()
        assert self.open.wait(SOON)
        self.reason = job.stop_reason()
        self.ended.set()
        if self.reason is not None:
            raise RunStoppedError(self.reason)
        return "done"


async def test_result_is_returned(scheduler: Scheduler) -> None:
    job = scheduler.submit(lambda _: "done", monotonic() + SOON)
    assert await result_of(job, scheduler, stay, SOON) == "done"


async def test_error_is_raised(scheduler: Scheduler) -> None:
    def fail(_: Job[None]) -> None:
        raise KeyError("no")

    job = scheduler.submit(fail, monotonic() + SOON)
    with pytest.raises(KeyError, match="no"):
        await result_of(job, scheduler, stay, SOON)


async def test_deadline_ends_the_wait_and_stops_the_work(scheduler: Scheduler) -> None:
    layers = Layers()
    job = scheduler.submit(layers, monotonic())
    job.deadline = monotonic() + 0.01
    with pytest.raises(ServiceError) as caught:
        await result_of(job, scheduler, stay, 0.01)
    assert (caught.value.status, caught.value.code) == (504, "timeout")
    assert caught.value.details == {"timeout": 0.01}
    layers.open.set()


async def test_deadline_that_the_worker_sees_first_is_the_same_error(scheduler: Scheduler) -> None:
    def stop(_: Job[None]) -> None:
        raise RunStoppedError("its time is up")

    job = scheduler.submit(stop, monotonic() + SOON)
    with pytest.raises(ServiceError) as caught:
        await result_of(job, scheduler, stay, 3)
    assert (caught.value.status, caught.value.code) == (504, "timeout")


@pytest.mark.parametrize("receive", [leave, leave_after("http.request")])
async def test_client_that_leaves_stops_the_work(scheduler: Scheduler, receive: Receive) -> None:
    layers = Layers()
    job = scheduler.submit(layers, monotonic() + SOON)
    assert await asyncio.to_thread(layers.begun.wait, SOON)
    with pytest.raises(ClientDisconnect):
        await result_of(job, scheduler, receive, SOON)
    layers.open.set()
    assert await asyncio.to_thread(layers.ended.wait, SOON)
    assert layers.reason == "the client left"


async def test_cancelled_request_stops_the_work(scheduler: Scheduler) -> None:
    layers = Layers()
    job = scheduler.submit(layers, monotonic() + SOON)
    request = asyncio.create_task(result_of(job, scheduler, stay, SOON))
    assert await asyncio.to_thread(layers.begun.wait, SOON)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    layers.open.set()
    assert await asyncio.to_thread(layers.ended.wait, SOON)
    assert layers.reason == "the request was cancelled"


async def test_nobody_watches_for_the_client_when_the_wait_is_over(scheduler: Scheduler) -> None:
    before = asyncio.all_tasks()
    job = scheduler.submit(lambda _: "done", monotonic() + SOON)
    await result_of(job, scheduler, stay, SOON)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
