from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from service.client import Client
from tests.service.models import add_model, add_models
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import ServerProcess


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one worker, whose queue holds one request of the model that blocks."""
    models = add_models(tmp_path_factory.mktemp("models"))
    add_model(models, "blocking", BLOCKING, "[scheduling]\nqueue_size = 1\nworkers = 1\n")
    with ServerProcess("--models", str(models), "--no-warm-up", "--workers", "1") as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url) as created:
        yield created


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A picture whose brightest pixel is the eighth."""
    path = tmp_path / "picture.png"
    image = Image.new("L", (10, 1))
    image.putpixel((7, 0), 255)
    image.save(path)
    return path
