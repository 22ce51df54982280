"""Models that are loaded while the server is still being imported."""

import threading
import weakref
from pathlib import Path

import anyio
import pytest
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.settings import Settings
from service.repository import repository
from service.repository.load_progress import LoadProgress, LoadStoppedError
from service.repository.preloader import Preloader
from service.repository.repository import RepositoryError
from tests.service.models import VECTOR, add_model


def test_models_are_loaded_before_anybody_asks(tmp_path: Path) -> None:
    add_model(tmp_path, "m", VECTOR)
    is_over = threading.Event()

    def note(state: object) -> None:
        if "1 of 1" in str(state):
            is_over.set()

    early = Preloader(Settings(models=tmp_path, backend="numpy"), LoadProgress(note))
    assert is_over.wait(60)
    assert list(early.entries()) == ["m"]


def test_callers_get_what_is_wrong(tmp_path: Path) -> None:
    early = Preloader(Settings(models=tmp_path / "nowhere"), LoadProgress())
    for _ in range(2):
        with pytest.raises(RepositoryError, match="nowhere"):
            early.entries()


def test_a_load_can_be_stopped(tmp_path: Path) -> None:
    add_model(tmp_path, "m", VECTOR)
    progress = LoadProgress()
    progress.stop()
    with pytest.raises(LoadStoppedError):
        Preloader(Settings(models=tmp_path), progress).entries()


@pytest.mark.anyio
async def test_the_application_serves_what_was_loaded_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_model(tmp_path, "m", VECTOR)
    settings = Settings(models=tmp_path, backend="numpy", workers=1, model_control="explicit")
    early = Preloader(settings, LoadProgress())
    model = weakref.ref(early.entries()["m"].versions["1"])
    monkeypatch.setattr(repository, "load_entries", lambda *_: pytest.fail("loaded twice"))
    app = create_app(settings, early)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        assert (await client.get("/readyz")).status_code == 200
        body = {"inputs": [{"shape": [1, 3], "dtype": "float32", "data": [1.0, -2.0, 3.0]}]}
        assert (await client.post("/infer", json=body)).json()["outputs"][0]["data"] == [[1, 0, 3]]
        assert (await client.post("/v2/repository/models/m/unload", json={})).status_code == 200
        for _ in range(100):
            if model() is None:
                break
            await anyio.sleep(0.05)
        assert model() is None, "nothing keeps the weights of a model that is not served any more"
