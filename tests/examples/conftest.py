"""Imports an example as a server's start-up module does, and takes back what it registered."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from httpx import ASGITransport, AsyncClient

import examples
from engine import registry
from engine.compiler import lowering, selection
from service.api import ROUTERS
from service.app import create_app
from service.codec.formats import FORMATS, RESPONSE_FORMATS
from service.config.settings import Settings
from service.config.task_keys import TASK_KEYS
from service.tasks import TASKS
from service.telemetry.metrics import COLLECTORS

Extend = Callable[[str], Any]
"""Name of an example -> its module, imported again."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def extend() -> Iterator[Extend]:
    """Import examples by name; when the test ends, all registries are as they were."""
    names: list[str] = []
    lists: list[list[Any]] = [ROUTERS, COLLECTORS]
    saved = [list(entries) for entries in lists]

    def extend_by(name: str) -> Any:
        names.append(name)
        return import_module(f"examples.{name}")

    dicts = (
        FORMATS,
        RESPONSE_FORMATS,
        TASKS,
        TASK_KEYS,
        registry._layers,
        lowering.LAYER_RULES,
        selection.RULES,
    )
    with ExitStack() as stack:
        for entries in dicts:
            stack.enter_context(patch.dict(entries))
        yield extend_by
    for added_to, before in zip(lists, saved, strict=True):
        added_to[:] = before
    for name in names:
        del sys.modules[f"examples.{name}"]
        delattr(examples, name)


@asynccontextmanager
async def serving(models: Path) -> AsyncIterator[AsyncClient]:
    """Serve a folder of models in this process, with whatever is registered."""
    app = create_app(Settings(models=models, workers=1))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        yield client
