"""One of several processes: a signal before it has signal handlers, and its end once another has taken its place."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from service.app import create_app
from service.config.settings import Settings
from service.lifecycle import Phase
from service.repository.load_progress import LoadStoppedError
from service.server import server as module
from service.server.connections import open_connections
from service.server.server import HANDSHAKE_SECONDS, WorkerServer
from service.services import services_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WorkerServer]:
    settings = Settings(models=tmp_path)
    app = create_app(settings)
    config = uvicorn.Config(app, log_config=None)
    config.load()
    ours, theirs = socket.socketpair()
    with ours:
        yield WorkerServer(config, services_of(app), "", open_connections(settings), theirs.detach())


async def test_signal_before_the_start_gives_up_the_loading(
    server: WorkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def started(*_: Any) -> None:
        """Load nothing."""

    monkeypatch.setattr(uvicorn.Server, "startup", started)
    services = server.services
    server.handle_exit(signal.SIGTERM, None)
    services.progress.check("reading m")
    await server.startup([])
    with pytest.raises(LoadStoppedError):
        services.progress.check("reading m")
    for task in server._tasks:
        task.cancel()
    server._writer.close()
    await asyncio.sleep(0)


async def test_process_that_was_replaced_waits_for_clients_that_shake_hands(
    server: WorkerServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(module, "monotonic", lambda: now)
    server.lifecycle.phase = Phase.READY
    monkeypatch.setattr(server, "_report_ready", lambda: None)
    server.config.ssl_certfile, server.config.ssl_keyfile = "cert.pem", "key.pem"
    server.servers = []
    server.retire()
    now += HANDSHAKE_SECONDS - 0.1
    assert not await server.on_tick(1)
    now += 0.1
    assert await server.on_tick(2)
    socket.socket(fileno=server._channel).close()
