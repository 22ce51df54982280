import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from service.services import services_of

pytestmark = pytest.mark.anyio


async def test_process_lives(client: AsyncClient) -> None:
    response = await client.get("/livez")
    assert (response.status_code, response.json()) == (200, {"status": "alive"})


async def test_server_is_ready(client: AsyncClient) -> None:
    response = await client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"status": "ready"})


async def test_server_that_shuts_down_is_alive_and_not_ready(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    services_of(fresh_app).lifecycle.drain()
    assert (await fresh_client.get("/livez")).status_code == 200
    response = await fresh_client.get("/readyz")
    assert (response.status_code, response.json()["code"]) == (503, "shutting_down")


async def test_head_responses_as_get_without_a_body(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    for path in ("/livez", "/readyz", "/"):
        assert (await fresh_client.head(path)).status_code == 200
    services_of(fresh_app).lifecycle.drain()
    assert (await fresh_client.head("/readyz")).status_code == 503
