"""A signal that comes when a process hardly runs, and has no signal handlers yet."""

import signal
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from service.app import create_app
from service.config.settings import Settings
from service.repository.load_progress import LoadStoppedError
from service.server.connection_policy import connection_policy
from service.server.server import WorkerServer
from service.services import services_of

pytestmark = pytest.mark.anyio


async def test_signal_before_the_start_gives_up_the_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def started(*_: Any) -> None:
        """Load nothing."""

    monkeypatch.setattr(uvicorn.Server, "startup", started)
    settings = Settings(models=tmp_path)
    app = create_app(settings)
    services = services_of(app)
    config = uvicorn.Config(app, log_config=None)
    config.load()
    server = WorkerServer(config, services, "", connection_policy(settings))
    server.handle_exit(signal.SIGTERM, None)
    services.progress.check("reading m")
    await server.startup([])
    with pytest.raises(LoadStoppedError):
        services.progress.check("reading m")
