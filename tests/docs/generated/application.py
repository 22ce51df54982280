"""The application in this process, with the models of the repository loaded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.choices import BackendName, ModelControl
from service.config.settings import Settings

ROOT = Path(__file__).parents[3]
DIGIT = ROOT / "models" / "digits" / "samples" / "7.png"


@asynccontextmanager
async def client(
    backend: BackendName, control: ModelControl = "none", models: Path = ROOT / "models"
) -> AsyncIterator[AsyncClient]:
    """Return a client of a new application; its models are loaded, for a backend, while it is entered."""
    app = create_app(Settings(models=models, backend=backend, model_control=control))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as server,
    ):
        yield server
