"""`HEAD` wherever there is `GET`."""

import pytest
from httpx import AsyncClient

pytestmark = pytest.mark.anyio

PATHS = [
    "/",
    "/models",
    "/models/vector",
    "/graph?model=vector",
    "/metrics",
    "/traces",
    "/docs",
    "/openapi.json",
    "/livez",
    "/readyz",
    "/v2",
    "/v2/health/ready",
    "/v2/models/vector",
    "/v2/models/vector/ready",
    "/v2/logging",
]


@pytest.mark.parametrize("path", PATHS)
async def test_head_is_answered_as_get_without_the_body(client: AsyncClient, path: str) -> None:
    response, whole = await client.head(path), await client.get(path)
    assert response.status_code == whole.status_code == 200
    assert response.content == b""
    assert response.headers["content-type"] == whole.headers["content-type"]
    if path not in ("/metrics", "/"):  # the one counts, the other lists what may change
        assert response.headers.get("content-length") == whole.headers.get("content-length")


async def test_errors_are_those_of_get(client: AsyncClient) -> None:
    for path, status in (("/nowhere", 404), ("/models/none", 404), ("/infer", 405)):
        response = await client.head(path)
        assert (response.status_code, response.content) == (status, b"")


async def test_metrics_count_head_by_its_name_and_route(fresh_client: AsyncClient) -> None:
    await fresh_client.head("/models/vector")
    text = (await fresh_client.get("/metrics")).text
    counted = 'http_request_method="HEAD",http_response_status_code="200",http_route="/models/{name}"'
    assert f"http_server_request_duration_seconds_count{{{counted}}} 1" in text
