"""An application in this process, its models loaded, and a client of it.

`app` and `client` are shared by the tests of a module. A test whose outcome depends on earlier requests, or that
changes the application (counters from zero, a drain, a full queue, added routes), takes `fresh_app` and `fresh_client`.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from tests.service.models import add_models


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def no_settings_from_outside() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.upper().startswith("KUIPER_")]:
            patch.delenv(name)
        patch.setenv("KUIPER_CACHE", "")  # as for all tests: what is kept is opened once in a process
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_models(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def settings(models: Path) -> Settings:
    return Settings(models=models, workers=1, queue_size=1, timeout=20, max_body_bytes=10_000)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[FastAPI]:
    """Create an application and load its models; unload them at the end."""
    created = create_app(settings)
    async with created.router.lifespan_context(created):
        yield created


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncIterator[AsyncClient]:
    """Create a client that calls an application in this process."""
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as created:
        yield created


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[AsyncClient]:
    """Create an application, load its models, and create a client of it."""
    async with running(settings) as app, client_of(app) as client:
        yield client


@pytest.fixture(scope="module")
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    async with running(settings) as created:
        yield created


@pytest.fixture(scope="module")
async def client(app: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_of(app) as created:
        yield created


@pytest.fixture
async def fresh_app(settings: Settings) -> AsyncIterator[FastAPI]:
    async with running(settings) as created:
        yield created


@pytest.fixture
async def fresh_client(fresh_app: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_of(fresh_app) as created:
        yield created
