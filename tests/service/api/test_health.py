import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from service.services import services_of

pytestmark = pytest.mark.anyio


async def test_process_lives(client: AsyncClient) -> None:
    answer = await client.get("/livez")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_server_is_ready(client: AsyncClient) -> None:
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


async def test_server_that_shuts_down_is_alive_and_not_ready(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    services_of(fresh_app).lifecycle.drain()
    assert (await fresh_client.get("/livez")).status_code == 200
    answer = await fresh_client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")


async def test_head_answers_as_get_without_a_body(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    for path in ("/livez", "/readyz", "/"):
        assert (await fresh_client.head(path)).status_code == 200
    services_of(fresh_app).lifecycle.drain()
    assert (await fresh_client.head("/readyz")).status_code == 503
