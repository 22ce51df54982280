"""What clients notice of models that are polled: new responses, and nothing else."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from service.services import services_of
from tests.service.stores.folders import write_scale

pytestmark = pytest.mark.anyio
BODY = {"inputs": [{"data": [[1, 1]]}]}
SOON = 60


@pytest.fixture
async def fresh_app(tmp_path: Path) -> AsyncIterator[FastAPI]:
    write_scale(tmp_path / "m" / "1", 1)
    settings = Settings(models=tmp_path, workers=2, backend="numpy", model_control="poll", poll_seconds=0.01)
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        yield created


async def scale(client: AsyncClient, version: str = "") -> float:
    query = f"&version={version}" if version else ""
    response = await client.post(f"/infer?model=m&trace=off{query}", json=BODY)
    assert response.status_code == 200, response.text
    value: float = response.json()["outputs"][0]["data"][0][0]
    return value


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.005)


async def test_no_request_fails_while_versions_come_and_go(
    tmp_path: Path, fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    over = asyncio.Event()
    repository = services_of(fresh_app).repository

    async def ask() -> list[float]:
        values = []
        while not over.is_set():
            values.append(await scale(fresh_client))
            await asyncio.sleep(0)
        return values

    asking = [asyncio.create_task(ask()) for _ in range(4)]
    for version in range(2, 6):
        write_scale(tmp_path / ".new", version).rename(tmp_path / "m" / str(version))
        await until(lambda version=version: str(version) in repository.versions("m"))  # type: ignore[misc]
        assert await scale(fresh_client) == version
    shutil.rmtree(tmp_path / "m" / "5")
    await until(lambda: repository.versions("m")[-1] == "4")
    assert await scale(fresh_client) == 4
    over.set()
    values = {value for values in await asyncio.gather(*asking) for value in values}
    assert values <= {1, 2, 3, 4, 5}


async def test_metrics_report_polls(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    poller = services_of(fresh_app).poller
    assert poller is not None
    await until(lambda: poller.succeeded > 2)
    lines = (await fresh_client.get("/metrics")).text.splitlines()
    values = {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }
    assert values['kuiper_polls_total{outcome="listed"}'] > 2
    assert values['kuiper_polls_total{outcome="failed"}'] == 0
    assert values['kuiper_poll_changes_total{outcome="loaded"}'] == 0
    assert values["kuiper_poll_last_success_timestamp_seconds"] > 1.7e9


async def test_clients_load_nothing_where_models_are_polled(fresh_client: AsyncClient) -> None:
    response = await fresh_client.post("/v2/repository/models/m/load", json={})
    assert response.status_code == 403
    assert "--model-control explicit" in response.text


async def test_the_probe_shows_what_is_waited_for(tmp_path: Path) -> None:
    root = tmp_path / "later"
    app = create_app(Settings(models=root, backend="numpy", model_control="poll", poll_seconds=0.01))
    services = services_of(app)
    services.opens_at_once = True
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        await until(lambda: "there is no folder" in str(services.progress.state))
        response = await client.get("/readyz")
        assert (response.status_code, response.json()["code"]) == (503, "not_ready")
        assert "later" in response.json()["error"]
        write_scale(root / "m", 7)
        await until(lambda: services.loaded is not None)
        assert await scale(client) == 7
        assert (await client.get("/readyz")).status_code == 200


async def test_nobody_polls_where_that_is_not_asked_for(models: Path) -> None:
    app = create_app(Settings(models=models, backend="numpy"))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        assert services_of(app).poller is None
        assert "kuiper_poll" not in (await client.get("/metrics")).text
