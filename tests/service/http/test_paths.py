"""The tables of paths against the routes of an application."""

import pytest
from httpx import AsyncClient

from service.http.paths import POLLED_PATHS, is_urgent, is_v2_path

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", sorted(POLLED_PATHS))
async def test_every_path_of_the_tables_is_answered(client: AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/infer",
        "/v1/models/vector:predict",
        "/v1/models/vector/versions/1:predict",
        "/v2/models/vector/infer",
        "/v2/models/vector/versions/1/infer",
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_models_are_run_by_post_alone(client: AsyncClient, path: str, method: str) -> None:
    response = await client.request(method, path)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert response.json()["details"]["allowed"] == ["POST"]
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize("path", sorted(POLLED_PATHS))
async def test_what_is_polled_takes_no_other_method(client: AsyncClient, path: str) -> None:
    response = await client.post(path)
    assert (response.status_code, response.headers["allow"]) == (405, "GET")
    head = await client.head(path)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("path", "is_v2"),
    [
        ("/v2", True),
        ("/v2/", True),
        ("/v2/models/m/infer", True),
        ("/v1/models/m:predict", False),
        ("/v2x", False),
        ("/infer", False),
        ("/", False),
        ("", False),
        ("/V2/models", False),
    ],
)
def test_v2_paths_are_known_by_their_prefix(path: str, is_v2: bool) -> None:
    assert is_v2_path(path) is is_v2


@pytest.mark.parametrize(
    ("method", "path", "urgent"),
    [
        ("POST", "/infer", True),
        ("POST", "/v2/models/a/versions/1/infer", True),
        ("POST", "/v1/models/a:predict", True),
        ("POST", "/v1/embeddings", True),
        ("GET", "/livez", True),
        ("GET", "/v2/health/ready", True),
        ("POST", "/livez", False),
        ("GET", "/infer", False),
        ("GET", "/metrics", False),
        ("POST", "/nothing", False),
    ],
)
def test_what_runs_a_model_or_asks_for_health_is_urgent(method: str, path: str, urgent: bool) -> None:
    assert is_urgent(method, path) is urgent
