"""The table of surfaces against the routes of an application."""

import pytest
from httpx import AsyncClient
from starlette.routing import Route

from service.http.application import Application
from service.scheduling.call import SurfaceName
from service.surfaces import DOCS_PATHS, INFER, POLLED_PATHS, SURFACES, V1, V2, is_urgent, surface_of

pytestmark = pytest.mark.anyio


async def test_every_inference_path_is_a_route_for_post_alone(app: Application) -> None:
    first = [route for route in app.routes[:5] if isinstance(route, Route)]
    assert {route.path: route.methods for route in first} == {
        "/v2/models/{name}/infer": {"POST"},
        "/v2/models/{name}/versions/{version}/infer": {"POST"},
        "/v1/models/{name}:predict": {"POST"},
        "/v1/models/{name}/versions/{version}:predict": {"POST"},
        "/infer": {"POST"},
    }


@pytest.mark.parametrize("path", sorted(POLLED_PATHS | DOCS_PATHS))
async def test_every_other_path_of_the_table_is_answered(client: AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("path", ["/infer", "/v2/models/vector/infer", "/v2/models/vector/versions/1/infer"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_models_are_run_by_post_alone(client: AsyncClient, path: str, method: str) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.json()["details"]["allowed"] == ["POST"]


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/v2", V2),
        ("/v2/", V2),
        ("/v2/models/m/infer", V2),
        ("/v1/models/m:predict", V1),
        ("/v2x", INFER),
        ("/infer", INFER),
        ("/", INFER),
        ("", INFER),
        ("/V2/models", INFER),
    ],
)
async def test_path_belongs_to_the_first_surface_whose_prefix_it_has(path: str, surface: object) -> None:
    assert surface_of(path) is surface


async def test_every_surface_has_a_name_of_its_own() -> None:
    assert {surface.name for surface in SURFACES} == set(SurfaceName) - {SurfaceName.GRPC}  # of another port
    assert len(SURFACES) == len(SurfaceName) - 1


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
