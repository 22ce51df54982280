"""A replica, where Ray is not: what Ray asks of it, and what it answers."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.to_thread import current_default_thread_limiter
from httpx import ASGITransport, AsyncClient
from uvicorn.config import HTTP_PROTOCOLS, Config
from uvicorn.server import ServerState

from service.config import machine as machine_module
from service.config.machine import Machine, this_machine
from service.errors import ServiceError
from service.ray import replica as replica_module
from service.ray.replica import Replica
from service.server.connection import Connection
from service.services import services_of

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A node of three CPUs, whose process is left as it was."""
    machine = Machine(3, "Ray", 1 << 30, "Ray")
    monkeypatch.setattr(replica_module, "_assigned_machine", lambda: machine)
    monkeypatch.setattr(machine_module, "_given", [])
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "127.0.0.1")
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


async def test_a_replica_is_the_server(models: Path) -> None:
    replica = Replica({"models": str(models), "queue_size": 7})
    app = replica.__serve_build_asgi_app__()
    with pytest.raises(ServiceError, match="not"):
        await replica.check_health()
    async with replica.application.router.lifespan_context(replica.application):
        await replica.check_health()
        async with AsyncClient(transport=ASGITransport(app), base_url="http://server") as client:
            assert (await client.get("/readyz")).json() == {"status": "ready"}
            assert (await client.get("/settings")).status_code == 200
        assert services_of(replica.application).settings.queue_size == 7
        current_default_thread_limiter().total_tokens = 1_000_000  # as Ray does
        await replica.check_health()
        assert current_default_thread_limiter().total_tokens == 2
    with pytest.raises(ServiceError, match="shut"):
        await replica.check_health()


async def test_uvicorn_speaks_http_with_the_servers_own_connection(models: Path) -> None:
    app = Replica({"models": str(models)}).__serve_build_asgi_app__()
    config = Config(
        app, lifespan="off", log_config=None
    )  # as Ray makes it, but that logging is that of the tests
    config.load()
    connection = config.http_protocol_class(config=config, server_state=ServerState(), app_state={})  # type: ignore[call-arg]
    assert isinstance(connection, Connection)


@pytest.mark.parametrize(
    ("given", "workers", "threads"),
    [({}, 3, 1), ({"workers": 1}, 1, 3), ({"threads": 2}, 3, 2), ({"workers": 4}, 4, 1)],
)
async def test_workers_fit_the_cpus_of_the_replica(
    models: Path, given: dict[str, int], workers: int, threads: int
) -> None:
    services = services_of(Replica({"models": str(models)} | given).application)
    settings = services.settings
    assert (settings.worker_count, settings.thread_count) == (workers, threads)
    assert this_machine().cpus == 3, "all that is sized by the machine, as are the threads that load models"
    assert settings.max_body_bytes < 1 << 30


async def test_a_python_proxy_is_reported(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RAY_SERVE_ENABLE_HA_PROXY", raising=False)
    Replica({"models": str(models)})
    assert "python -m service.ray" in capsys.readouterr().err
    monkeypatch.setenv("RAY_SERVE_ENABLE_HA_PROXY", "1")
    Replica({"models": str(models)})
    assert "python -m service.ray" not in capsys.readouterr().err
