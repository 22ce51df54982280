"""An application in this process, its models loaded, and a client of it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from service.http.application import Application
from tests.service.models import add_models


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("KUIPER_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("KUIPER_CACHE", "")  # as for all tests: what is kept is opened once in a process


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def settings(models: Path) -> Settings:
    return Settings(models=models, workers=1, queue_size=1, timeout=20, max_body_bytes=10_000)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[Application]:
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        yield created


@pytest.fixture
async def client(app: Application) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as created:
        yield created
