"""Health while the server comes and goes."""

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from service.services import services_of

pytestmark = pytest.mark.anyio


async def test_server_that_has_not_started_is_live_but_not_ready(settings: Settings) -> None:
    async with AsyncClient(transport=ASGITransport(create_app(settings)), base_url="http://test") as client:
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        response = await client.get("/v2/health/ready")
        assert (response.status_code, response.json()["code"]) == (503, "not_ready")
        assert (await client.get("/v2/models/pair/ready")).status_code == 503


async def test_server_that_drains_is_live_but_not_ready(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    assert (await fresh_client.get("/v2/health/ready")).json() == {"ready": True}
    services_of(fresh_app).lifecycle.drain()
    assert (await fresh_client.get("/v2/health/live")).status_code == 200
    response = await fresh_client.get("/v2/health/ready")
    assert (response.status_code, response.json()["code"]) == (503, "shutting_down")
    assert (await fresh_client.post("/v2/models/pair/infer")).status_code == 503
