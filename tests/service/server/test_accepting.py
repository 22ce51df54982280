"""How a server accepts connections, on the event loop that it runs on."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme
import uvicorn
from starlette.responses import PlainTextResponse

from service.config.settings import Settings
from service.lifecycle import Lifecycle
from service.scheduling.scheduler import Scheduler
from service.server import server as module
from service.server.server import Server
from service.services import Services
from service.telemetry.telemetry import Telemetry
from service.traffic.shadows import Shadows
from service.traffic.traffic import Traffic

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"]),
    pytest.mark.skipif("sys.platform == 'win32'", reason="uvloop is not available there"),
]


async def start(listening: socket.socket, http: type[asyncio.Protocol], **tls: Any) -> Server:
    """Have a server accept connections from a socket."""
    settings, lifecycle = Settings(), Lifecycle()
    scheduler = Scheduler(settings)
    traffic = Traffic(Shadows(scheduler, 1, lambda *_: None))
    services = Services(settings, lifecycle, scheduler, Telemetry(settings), traffic)
    config = uvicorn.Config(PlainTextResponse(), http=http, log_config=None, lifespan="off", **tls)
    config.load()
    server = Server(config, services)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listening])
    return server


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=16) as made:
        made.setblocking(False)
        yield made


async def test_connections_that_come_together_are_accepted_one_in_each_turn(listening: socket.socket) -> None:
    taken: list[int] = []

    def counted(own: int) -> type[asyncio.Protocol]:
        class Counted(asyncio.Protocol):
            def __init__(self, **_: Any) -> None:
                taken.append(own)

        return Counted

    with ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        servers = [await start(listening.dup(), counted(own)) for own in range(2)]
        async with asyncio.timeout(20):
            while len(taken) < 16:
                await asyncio.sleep(0)
        for server in servers:
            server.servers[0].close()
    assert taken.count(0) == taken.count(1) == 8


async def test_clients_that_never_shake_hands_are_aborted(
    listening: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "HANDSHAKE_SECONDS", 0.05)
    pem = tmp_path / "server.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)

    class Plain(asyncio.Protocol):
        def __init__(self, **_: Any) -> None:
            """Take no options."""

    address = listening.getsockname()
    server = await start(listening, Plain, ssl_certfile=pem)
    with socket.create_connection(address) as client:
        client.setblocking(False)
        async with asyncio.timeout(20):
            assert await asyncio.get_running_loop().sock_recv(client, 1) == b""
    server.servers[0].close()
