"""One client takes all that it can get; another is answered all the same, known by its key or by its address."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.models import add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import SOON, ServerProcess
from tests.service.server.wire.wire import Ask, Wire

FLOOD, HONEST = "flood-0123456789abcdef", "honest-0123456789abcdef"
QUEUE = 8


class Clients:
    """Clients by key or by address, and their connections.

    Args:
        by_key: whether they have keys, rather than addresses of their own.
    """

    def __init__(self, *, by_key: bool) -> None:
        self.flags = ("--api-keys-file", "KEYS") if by_key else ()
        self._by_key = by_key
        self._wires: list[Wire] = []

    def send(self, server: ServerProcess, client: str, body: bytes) -> Wire:
        """Send a request on a new connection."""
        headers = (("X-API-Key", client),) if self._by_key else ()
        packet = Ask("/infer", body, headers).plain()
        port = urlsplit(server.url).port
        assert port is not None
        source = "127.0.0.2" if client == FLOOD and not self._by_key else "127.0.0.1"
        connection = socket.create_connection(("127.0.0.1", port), SOON, (source, 0))
        wire = Wire(connection)
        self._wires.append(wire)
        wire.send(packet)
        return wire

    def close(self) -> None:
        for wire in self._wires:
            wire.close()


@pytest.fixture(params=["key", "address"])
def clients(request: pytest.FixtureRequest) -> Iterator[Clients]:
    created = Clients(by_key=request.param == "key")
    yield created
    created.close()


def number(value: int) -> bytes:
    return b'{"inputs": [{"data": [%d]}]}' % value


def start(folder: Path, clients: Clients, *flags: str) -> ServerProcess:
    keys = folder / "keys"
    keys.write_text(f"{FLOOD}\n{HONEST}\n")
    keyed = [str(keys) if flag == "KEYS" else flag for flag in clients.flags]
    models = add_model(folder / "models", "blocking", BLOCKING)
    return ServerProcess("--models", str(models), "--no-warm-up", "--workers", "1", *keyed, *flags)


def wait_for(server: ServerProcess, waiting: int) -> None:
    """Return when so many requests wait."""
    counted = re.compile(rf"^nv_inference_pending_request_count\{{.*\}} {waiting}\.0$", re.MULTILINE)
    headers = {"X-API-Key": HONEST}
    while not counted.search(httpx.get(f"{server.url}/metrics", headers=headers, timeout=SOON).text):
        pass


def test_a_flood_of_one_client_leaves_places_to_another(tmp_path: Path, clients: Clients) -> None:
    with start(tmp_path, clients, "--queue-size", str(QUEUE)) as server:
        flood = [clients.send(server, FLOOD, number(0))]
        assert server.entered.take() == 0
        for value in range(1, QUEUE + 1):
            flood.append(clients.send(server, FLOOD, number(value)))
            wait_for(server, value)
        refused = clients.send(server, FLOOD, number(99)).reply()
        assert (refused.status, refused.json()["code"]) == (503, "queue_full")
        honest = clients.send(server, HONEST, number(100))
        displaced = flood.pop().reply()
        assert (displaced.status, displaced.json()["code"]) == (503, "queue_full")
        assert int(displaced.headers["retry-after"]) >= 1
        assert "connection" not in displaced.headers
        server.gate.give(3)
        assert [server.entered.take() for _ in range(2)] == [1, 100]  # the clients take turns
        assert honest.reply().json()["outputs"][0]["data"] == [100]
        server.gate.give(QUEUE)
        assert [wire.reply().status for wire in flood] == [200] * QUEUE


def test_bodies_of_one_client_leave_room_to_another(tmp_path: Path, clients: Clients) -> None:
    with start(tmp_path, clients, "--max-buffered-bytes", "1000", "--queue-size", "90") as server:
        body = number(0) + b" " * 473
        flood = [clients.send(server, FLOOD, body)]
        assert server.entered.take() == 0
        flood.append(clients.send(server, FLOOD, body))
        wait_for(server, 1)
        refused = clients.send(server, FLOOD, number(99)).reply()
        assert (refused.status, refused.json()["code"]) == (503, "buffers_full")
        honest = clients.send(server, HONEST, number(100))
        server.gate.give(3)
        assert honest.reply().json()["outputs"][0]["data"] == [100]
        assert [wire.reply().status for wire in flood] == [200] * 2
