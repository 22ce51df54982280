"""Servers of a model `m` of versions 1 to 3, which double, negate and triple, with a `[traffic]` table."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from tests.service.models import add_versions

FACTORS = {"1": 2.0, "2": -1.0, "3": 3.0}
BODY = {"inputs": [{"data": [[1.0, 2.0, 3.0]]}]}

Serve = Callable[..., AbstractAsyncContextManager[tuple[FastAPI, AsyncClient]]]


def scaled(factor: float) -> str:
    return f"""
    pnnx.Input      in    0 1 0 #0=(?,3)f32
    pnnx.Expression scale 1 1 0 1 expr=mul(@0,{factor}) #0=(?,3)f32 #1=(?,3)f32
    pnnx.Output     out   1 0 1 #1=(?,3)f32
    """


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of models."""
    add_versions(tmp_path, "m", {version: scaled(factor) for version, factor in FACTORS.items()})
    return tmp_path


@pytest.fixture
def serve(root: Path) -> Serve:
    """Opens a server and a client of it, from the text of `model.toml` and settings."""

    @asynccontextmanager
    async def opened(config: str, **settings: Any) -> AsyncIterator[tuple[FastAPI, AsyncClient]]:
        (root / "m/model.toml").write_text(config)
        chosen: dict[str, Any] = {
            "workers": 1,
            "warm_up": False,
            "backend": "numpy",
            "model_control": "explicit",
        } | settings
        app = create_app(Settings(models=root, **chosen))
        async with (
            app.router.lifespan_context(app),
            AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
        ):
            yield app, client

    return opened
