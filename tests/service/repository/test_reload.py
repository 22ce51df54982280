"""What requests notice of reloads, and what reloads leave behind: nothing."""

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from engine import RunResult, RuntimeGraph
from service.app import create_app
from service.config.settings import Settings
from service.repository.repository import ModelRepository
from service.services import services_of
from tests.engine.models import write_model

pytestmark = pytest.mark.anyio

SOON = 20
RELOADS = 200
WIDTH = 32 * 1024
WEIGHT_BYTES = WIDTH * 2 * 4
LINES = f"""
    pnnx.Input  in     0 1 0 #0=(1,2)f32
    nn.Linear   linear 1 1 0 1 bias=False in_features=2 out_features={WIDTH} @weight=({WIDTH},2)f32
    torch.amax  top    1 1 1 2 dim=(1) keepdim=False
    pnnx.Output out    1 0 2
"""
"""Returns (a + b) * scale."""
BODY = {"inputs": [{"data": [[1, 2]]}]}


def write_scale(root: Path, scale: float) -> None:
    folder = root / "m"
    folder.mkdir(exist_ok=True)
    write_model(folder, LINES, {"linear.weight": np.full((WIDTH, 2), scale, np.float32)})


@pytest.fixture
async def fresh_app(tmp_path: Path) -> AsyncIterator[FastAPI]:
    write_scale(tmp_path, 2)
    created = create_app(Settings(models=tmp_path, workers=2, model_control="explicit"))
    async with created.router.lifespan_context(created):
        yield created


@pytest.fixture
def repository(fresh_app: FastAPI) -> ModelRepository:
    return services_of(fresh_app).repository


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def response_of(client: AsyncClient) -> float:
    response = await client.post("/infer?model=m", json=BODY)
    assert response.status_code == 200, response.text
    value: float = response.json()["outputs"][0]["data"][0]
    return value


class Freed:
    """Notes when a model, its graph and its weights are freed."""

    def __init__(self, repository: ModelRepository) -> None:
        model = repository.find("m")
        weights = model.graph.operators[1].attrs["weight"].data.obj
        self._events = [threading.Event() for _ in range(3)]
        for part, event in zip((model, model.graph, weights), self._events, strict=True):
            weakref.finalize(part, event.set)

    def now(self) -> list[bool]:
        return [event.is_set() for event in self._events]

    async def soon(self) -> list[bool]:
        return [await asyncio.to_thread(event.wait, SOON) for event in self._events]


def resident_bytes() -> int:
    path = Path("/proc/self/statm")
    if not path.exists():
        pytest.skip("the platform does not show a process's resident memory so")
    return int(path.read_text().split()[1]) * 4096


async def test_requests_notice_nothing_of_reloads(
    tmp_path: Path, fresh_client: AsyncClient, repository: ModelRepository
) -> None:
    over = asyncio.Event()

    async def ask() -> list[float]:
        values = []
        while not over.is_set():
            values.append(await response_of(fresh_client))
        return values

    asking = [asyncio.create_task(ask()) for _ in range(4)]
    for round_ in range(20):
        write_scale(tmp_path, 2 + round_ % 2)
        await asyncio.to_thread(repository.load, "m")
        assert await response_of(fresh_client) == 3 * (2 + round_ % 2)
    over.set()
    values = [value for values in await asyncio.gather(*asking) for value in values]
    assert set(values) == {6, 9}


async def test_reloads_leave_no_memory_and_no_thread_behind(
    fresh_client: AsyncClient, repository: ModelRepository
) -> None:
    loop, loader = asyncio.get_running_loop(), ThreadPoolExecutor(1)

    async def reload(times: int) -> None:
        for _ in range(times):
            await loop.run_in_executor(loader, repository.load, "m")
            await response_of(fresh_client)

    await reload(40)
    before, threads = resident_bytes(), {*threading.enumerate()}
    await reload(RELOADS)
    assert {*threading.enumerate()} <= threads
    loader.shutdown()
    assert resident_bytes() - before < RELOADS * WEIGHT_BYTES / 4


@pytest.mark.usefixtures("no_collector")
async def test_retired_model_is_freed_when_nobody_runs_it(
    fresh_client: AsyncClient, repository: ModelRepository
) -> None:
    await response_of(fresh_client)
    freed = Freed(repository)
    await asyncio.to_thread(repository.load, "m")
    assert await freed.soon() == [True] * 3
    freed = Freed(repository)
    await response_of(fresh_client)
    await asyncio.to_thread(repository.unload, "m")
    assert await freed.soon() == [True] * 3


@pytest.mark.usefixtures("no_collector")
async def test_retired_model_is_freed_when_its_last_run_ends(
    tmp_path: Path, fresh_client: AsyncClient, repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, go_on = threading.Event(), threading.Event()
    run = RuntimeGraph.run

    def held_up(graph: RuntimeGraph, *args: Any, **rest: Any) -> RunResult:
        running.set()
        assert go_on.wait(SOON)
        return run(graph, *args, **rest)

    freed = Freed(repository)
    with monkeypatch.context() as patch:
        patch.setattr(RuntimeGraph, "run", held_up)
        asking = asyncio.create_task(response_of(fresh_client))
        assert await asyncio.to_thread(running.wait, SOON)
        patch.setattr(RuntimeGraph, "run", run)
        write_scale(tmp_path, 5)
        await asyncio.to_thread(repository.load, "m")
        assert await response_of(fresh_client) == 15
        assert freed.now() == [False] * 3
        go_on.set()
    assert await asking == 6
    assert await freed.soon() == [True] * 3


async def test_file_written_over_in_place_changes_nothing_until_it_is_loaded(
    tmp_path: Path, fresh_client: AsyncClient, repository: ModelRepository
) -> None:
    path = tmp_path / "m" / "model.bin"
    content = path.read_bytes()
    for damage in (b"", b"\xff" * len(content)):
        path.write_bytes(damage)
        assert await response_of(fresh_client) == 6
        with pytest.raises(Exception, match="m' cannot be loaded: m/model.bin"):
            await asyncio.to_thread(repository.load, "m")
        assert await response_of(fresh_client) == 6


async def test_examples_of_the_api_follow_what_is_served(
    fresh_app: FastAPI, repository: ModelRepository
) -> None:
    def examples() -> int:
        content = fresh_app.openapi()["paths"]["/infer"]["post"]["requestBody"]["content"]
        return sum(len(described.get("examples", ())) for described in content.values())

    assert examples() > 0
    await asyncio.to_thread(repository.unload, "m")
    assert examples() == 0
    await asyncio.to_thread(repository.load, "m")
    assert examples() > 0
