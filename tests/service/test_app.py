import threading
from pathlib import Path

import pytest
from anyio.to_thread import current_default_thread_limiter
from httpx import ASGITransport, AsyncClient
from pydantic import SecretStr

from service.app import create_app
from service.config.settings import Settings
from service.lifecycle import Phase
from service.repository.repository import RepositoryError
from service.services import services_of
from tests.service.models import UNKNOWN_LAYER, add_model

pytestmark = pytest.mark.anyio


def worker_threads() -> int:
    return sum(thread.name.startswith("worker-") for thread in threading.enumerate())


async def test_models_are_loaded_once_when_the_application_starts(settings: Settings) -> None:
    app = create_app(settings)
    services = services_of(app)
    assert services.loaded is None
    async with app.router.lifespan_context(app):
        assert services.repository.names == ["digit", "pair", "vector"]
        seen = [(services.lifecycle.phase, worker_threads())]
    seen.append((services.lifecycle.phase, worker_threads()))
    assert seen == [(Phase.READY, 1), (Phase.DRAINING, 0)]


async def test_few_threads_compute_responses_beside_the_event_loop(settings: Settings) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        assert current_default_thread_limiter().total_tokens == 2


async def test_before_that_it_is_not_ready(settings: Settings) -> None:
    transport = ASGITransport(create_app(settings))
    async with AsyncClient(transport=transport, base_url="http://test") as client:
        assert (await client.get("/livez")).status_code == 200
        for path in ("/readyz", "/models", "/graph", "/"):
            response = await client.get(path)
            assert (response.status_code, response.json()["code"]) == (503, "not_ready")
        assert (await client.get("/openapi.json")).status_code == 200


async def test_names_of_models_are_kept_from_those_without_a_key(models: Path) -> None:
    for settings, shown in (
        (Settings(models=models), "0 of 3 models, compiling digit"),
        (Settings(models=models, api_keys=SecretStr("api-0123456789abcdef")), "0 of 3 models"),
    ):
        app = create_app(settings)
        services_of(app).progress.expect(3)
        services_of(app).progress.step("compiling digit")
        async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
            for path in ("/readyz", "/v2/health/ready"):
                response = (await client.get(path)).json()
                assert response["error"] == f"the models are not loaded yet ({shown})"
                assert response["details"]["steps"] == shown.split(", ")[1:]


async def test_application_of_a_server_starts_before_its_models_are_loaded(settings: Settings) -> None:
    app = create_app(settings)
    services = services_of(app)
    services.opens_at_once = True
    async with app.router.lifespan_context(app):
        assert services.loaded is None
    assert services.lifecycle.phase is Phase.DRAINING
    assert worker_threads() == 0


async def test_failed_start_shows_its_reason_and_no_traceback(tmp_path: Path) -> None:
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    app = create_app(Settings(models=tmp_path, workers=1))
    sent: list[dict[str, str]] = []

    async def receive() -> dict[str, str]:
        return {"type": "lifespan.startup"}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    with pytest.raises(RepositoryError):
        await app({"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)
    assert [message["type"] for message in sent] == ["lifespan.startup.failed"]
    assert sent[0]["message"].startswith("model unknown is broken: 1 unsupported operator: nn.RELU relu")
    assert "Traceback" not in sent[0]["message"]
    assert worker_threads() == 0


def test_application_of_somebody_else_has_no_services() -> None:
    app = create_app(Settings())
    app.state.services = "x"
    with pytest.raises(TypeError, match="is a str"):
        services_of(app)
