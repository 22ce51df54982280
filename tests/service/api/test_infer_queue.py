"""`POST /infer` in this process: several requests at once, a full queue, deadlines."""

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from engine import Array, RunResult, RuntimeGraph
from engine.run.run import StopCheck
from service.api import infer as route
from service.scheduling import scheduler
from service.scheduling.policy import SchedulingPolicy
from service.services import services_of
from tests.service.api.responses import check_error, values
from tests.service.codec.payloads import npy
from tests.service.scheduling.stubs import expire

pytestmark = pytest.mark.anyio
SOON = 20.0


class Gate:
    """Replaces the run of a model: says when it has begun, goes on when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()
        self.reasons: list[str | None] = []
        monkeypatch.setattr(RuntimeGraph, "run", self)

    def __call__(self, inputs: dict[str, Array], *, stop: StopCheck, **options: object) -> RunResult:
        self.begun.release()
        assert self.open.wait(SOON)
        self.reasons.append(stop())
        return RunResult(list(inputs.values()))

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)


def number(value: int) -> dict[str, Any]:
    return {"inputs": [{"data": [[value, value, value]]}]}


async def waiting_in_queue(app: FastAPI, count: int) -> None:
    async with asyncio.timeout(SOON):
        while services_of(app).scheduler.waiting() != count:
            await asyncio.sleep(0)


async def test_request_too_many_is_refused_while_health_responses(
    fresh_app: FastAPI, fresh_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    first = asyncio.create_task(fresh_client.post("/infer?model=vector", json=number(1)))
    await gate.has_begun()
    second = asyncio.create_task(fresh_client.post("/infer?model=vector", json=number(2)))
    await waiting_in_queue(fresh_app, 1)
    response = await fresh_client.post("/infer?model=vector", json=number(3))
    details = check_error(response, 503, "queue_full")
    assert (details["waiting"], details["running"]) == (1, 1)
    assert int(response.headers["retry-after"]) >= 1
    assert (await fresh_client.get("/livez")).status_code == 200
    assert (await fresh_client.get("/readyz")).status_code == 200
    gate.open.set()
    assert [values(await task) for task in (first, second)] == [[[1, 1, 1]], [[2, 2, 2]]]


async def test_request_too_many_is_refused_before_its_body_is_read(
    fresh_app: FastAPI, fresh_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_body(*_: object) -> bytes:
        raise AssertionError("the body was read")

    gate = Gate(monkeypatch)
    tasks = [asyncio.create_task(fresh_client.post("/infer?model=vector", json=number(1))) for _ in range(2)]
    await gate.has_begun()
    await waiting_in_queue(fresh_app, 1)
    with monkeypatch.context() as patch:
        patch.setattr(route, "read_body", read_body)
        check_error(await fresh_client.post("/infer?model=vector", json=number(1)), 503, "queue_full")
    gate.open.set()
    await asyncio.gather(*tasks)


async def test_request_that_takes_too_long_is_aborted(
    fresh_app: FastAPI, fresh_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    services = services_of(fresh_app)
    monkeypatch.setattr(
        scheduler, "scheduling_policy", lambda config, settings, batching: SchedulingPolicy(timeout=600.0)
    )
    task = asyncio.create_task(fresh_client.post("/infer?model=vector", json=number(1)))
    await gate.has_begun()
    expire(services.scheduler)
    assert check_error(await task, 504, "timeout") == {"timeout": 600.0}
    assert services.scheduler.running() == 1
    gate.open.set()
    async with asyncio.timeout(SOON):
        while services.scheduler.running():
            await asyncio.sleep(0)
    assert gate.reasons == ["its time is up"]


async def test_requests_at_once_are_answered_as_one_by_one(settings: Any, client: AsyncClient) -> None:
    async def ask(value: int) -> Any:
        body = npy(np.array([[value, -value, 0.5]], np.float32))
        while (
            response := await client.post("/infer?model=vector&trace=off", content=body)
        ).status_code == 503:
            await asyncio.sleep(0)
        return values(response)

    responses = await asyncio.gather(*(ask(value) for value in range(100)))
    assert responses == [[[value, 0, 0.5]] for value in range(100)]
