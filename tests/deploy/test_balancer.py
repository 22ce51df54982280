"""Two real servers behind a real HAProxy, as the compose file runs them: what leaves, and how, fails no request."""

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from fastapi.routing import APIRoute

from service.api import infer, predict, v2
from service.config.settings import Settings
from service.http.paths import ADMIN_PATHS
from tests.deploy.balanced import CONFIG, Balancer, Clients, haproxy, needs_haproxy, outputs, place_of
from tests.service.models import VECTOR, add_model
from tests.service.server.process import ServerProcess

pytestmark = needs_haproxy
INFER = "/v2/models/vector/infer"
BODY = json.dumps(
    {"inputs": [{"name": "pnnx_input_0", "shape": [1, 3], "datatype": "FP32", "data": [-1.0, 2.0, 3.0]}]}
).encode()
MANY = 300
"""Responses that are waited for: the balancer has seen all that there is to see by then."""


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(add_model(tmp_path / "models", "vector", VECTOR))


@contextmanager
def balanced(model: str, *flags: str) -> Iterator[tuple[ServerProcess, Balancer]]:
    """Two servers behind a balancer; the first one is given as well."""
    command = ("--models", model, *flags)
    with (
        ServerProcess(*command, module="service.cli") as one,
        ServerProcess(*command, module="service.cli") as two,
        Balancer([place_of(one.url), place_of(two.url)]) as balancer,
    ):
        yield one, balancer


def check_responses(clients: Clients) -> None:
    assert clients.failures == []
    assert outputs(clients.responses[0]) == [
        {"name": "1", "datatype": "FP32", "shape": [1, 3], "data": [0.0, 2.0, 3.0]}
    ]
    assert {json.dumps(outputs(response)) for response in clients.responses} == {
        json.dumps(outputs(clients.responses[0]))
    }


def test_configuration_is_valid() -> None:
    places = {"REPLICA_1": "127.0.0.1:1", "REPLICA_2": "127.0.0.1:2"}
    command = [haproxy(), "-c", "-f", str(CONFIG)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | places)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def test_a_replica_that_is_killed_fails_no_request(model: str) -> None:
    with balanced(model) as (one, balancer):
        with Clients(balancer.port, INFER, BODY) as clients:
            clients.wait_for_more(MANY)
            one.process.kill()
            clients.wait_for_more(MANY)
        check_responses(clients)
        assert balancer.ask("GET", "/readyz") == 200


def test_a_replica_that_is_drained_fails_no_request(model: str) -> None:
    with balanced(model, "--drain-delay-seconds", "5") as (one, balancer):
        with Clients(balancer.port, INFER, BODY) as clients:
            clients.wait_for_more(MANY)
            one.terminate()
            assert one.exit_code() == 0
            clients.wait_for_more(MANY)
        check_responses(clients)


class Leaver:
    """A replica that is ready, and leaves without a response whenever it is asked anything else."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                line = connection.recv(1 << 16).decode().partition("\r\n")[0]
                if line.startswith("GET /readyz"):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                else:
                    self.requests.append(line)


@pytest.mark.parametrize(
    ("path", "tries"),
    [(INFER, 3), ("/infer", 3), ("/v1/models/vector:predict", 3), ("/compare", 1), ("/expression", 1)],
)
def test_only_inference_is_sent_again(path: str, tries: int) -> None:
    replicas = [Leaver(), Leaver()]
    try:
        with Balancer([replica.place for replica in replicas]) as balancer:
            assert balancer.ask("POST", path, b"{}") == 502
        asked = [line for replica in replicas for line in replica.requests]
        assert asked == [f"POST {path} HTTP/1.1"] * tries
        if tries > 1:
            assert all(replica.requests for replica in replicas)
    finally:
        for replica in replicas:
            replica.close()


def test_every_inference_path_is_known_to_the_balancer() -> None:
    patterns = re.findall(r"acl inference path_reg (\S+)", CONFIG.read_text())
    routes = [route for module in (infer, predict, v2) for route in module.router.routes]
    templates = [route.path for route in routes if isinstance(route, APIRoute)]
    runs = [template for template in templates if template.endswith(("/infer", ":predict"))]
    assert len(runs) == 5
    for template in runs:
        path = template.replace("{name}", "digits").replace("{version}", "3")
        assert path == "/infer" or any(re.search(pattern, path) for pattern in patterns), path
    changes = re.findall(r"acl change path,url_dec -m reg \^(\S+)\$", CONFIG.read_text())
    assert sorted("|".join(changes).split("|/")) == sorted(ADMIN_PATHS.pattern.split("|/"))


def test_what_would_change_one_replica_is_refused_in_words() -> None:
    replicas = [Leaver(), Leaver()]
    changes = [
        ("POST", "/v2/repository/models/vector/load"),
        ("POST", "/v2/repository/models/vector/%75nload"),
        ("POST", "/v2/logging"),
    ]
    try:
        with Balancer([replica.place for replica in replicas]) as balancer:
            assert [balancer.ask(method, path, b"{}") for method, path in changes] == [403] * len(changes)
            assert balancer.ask("GET", "/v2/logging") == 502, "what only reads is passed on"
        assert {line for replica in replicas for line in replica.requests} == {"GET /v2/logging HTTP/1.1"}
    finally:
        for replica in replicas:
            replica.close()


def test_balancer_waits_longer_than_the_server_and_notices_before_the_drain_begins() -> None:
    text = CONFIG.read_text()
    (waits,) = re.findall(r"timeout server (\d+)s", text)
    assert float(waits) > Settings.model_fields["timeout"].default
    ((interval, falls),) = re.findall(r"check inter (\d+)ms .* fall (\d+)", text)
    compose = yaml.safe_load(CONFIG.with_name("docker-compose.yml").read_text())
    for name in ("kuiper-1", "kuiper-2"):
        service = compose["services"][name]
        delay = float(service["environment"]["KUIPER_DRAIN_DELAY_SECONDS"])
        assert delay > 2 * int(interval) / 1000 * int(falls)
        grace = float(service["stop_grace_period"].removesuffix("s"))
        assert grace > delay + Settings.model_fields["drain_seconds"].default + 5
        assert f"-{name}:8000" in text
        for variable in service["environment"]:
            assert variable.removeprefix("KUIPER_").lower() in Settings.model_fields
