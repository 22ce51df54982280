"""More work than workers: overload, deadlines, clients that leave, health all the while."""

import asyncio
import re
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np
import pytest

from tests.service.codec.payloads import npy
from tests.service.models import VECTOR, add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import ROOT, SOON, ServerProcess

LEFT = re.compile("status=499")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    add_model(root, "blocking", BLOCKING)
    add_model(root, "vector", VECTOR)
    return root


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as created:
        yield created


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--no-warm-up", "--workers", "1", *flags)


@pytest.fixture(scope="module")
def shared_server(models: Path) -> Iterator[ServerProcess]:
    with start(models) as started:
        yield started


@pytest.fixture
def server(shared_server: ServerProcess) -> ServerProcess:
    """A server with one worker, idle; requests of earlier tests have left nothing in its pipes and its log."""
    shared_server.reset()
    return shared_server


def ask(server: ServerProcess, number: int) -> httpx.Response:
    body = {"inputs": [{"data": [number]}]}
    return httpx.post(f"{server.url}/infer?model=blocking", json=body, timeout=SOON)


def begun(server: ServerProcess, pool: ThreadPoolExecutor, number: int) -> "Future[httpx.Response]":
    """Send a request and return when a worker is on it."""
    response = pool.submit(ask, server, number)
    assert server.entered.take() == number
    return response


def send_and_stay(server: ServerProcess, number: int) -> socket.socket:
    """Send a request and keep its connection."""
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    body = b'{"inputs": [{"data": [%d]}]}' % number
    connection = socket.create_connection((address.hostname, address.port), SOON)
    head = f"POST /infer?model=blocking HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_request_too_many_gets_retry_after(models: Path, pool: ThreadPoolExecutor) -> None:
    with start(models, "--queue-size", "1") as server:
        responses = [begun(server, pool, 1), pool.submit(ask, server, 2), pool.submit(ask, server, 3)]
        refused = next(response for response in _done(responses) if response.status_code == 503)
        assert refused.json()["code"] == "queue_full"
        assert int(refused.headers["retry-after"]) >= 1
        server.gate.give(2)
        assert sorted(response.result(SOON).status_code for response in responses) == [200, 200, 503]
        server.gate.give()
        assert ask(server, 4).status_code == 200


def _done(responses: "list[Future[httpx.Response]]") -> Iterator[httpx.Response]:
    return (response.result() for response in as_completed(responses, SOON))


def test_health_responses_while_all_workers_are_busy(server: ServerProcess, pool: ThreadPoolExecutor) -> None:
    running = begun(server, pool, 1)
    waiting = pool.submit(ask, server, 2)
    for path in ("/livez", "/readyz", "/models", "/graph?model=blocking", "/docs"):
        assert httpx.get(server.url + path, timeout=SOON).status_code == 200
    server.gate.give(2)
    assert [running.result(SOON).status_code, waiting.result(SOON).status_code] == [200, 200]


def test_request_that_takes_too_long_is_stopped_before_its_next_layer(
    models: Path, pool: ThreadPoolExecutor
) -> None:
    with start(models, "--timeout", "4") as server:  # a busy machine needs a part of it to begin the run
        late = begun(server, pool, 1).result(SOON)
        assert (late.status_code, late.json()["code"]) == (504, "timeout")
        assert late.json()["details"] == {"timeout": 4.0}
        server.gate.give(2)
        assert ask(server, 2).status_code == 200
        assert server.entered.take() == 2
        assert server.passed.take() == 2, "the run of request 1 went on"


def test_body_that_does_not_arrive_is_aborted(models: Path) -> None:
    with start(models, "--timeout", "0.5") as server:
        port = urlsplit(server.url).port
        assert port is not None
        with socket.create_connection(("127.0.0.1", port), SOON) as connection:
            connection.sendall(b"POST /infer?model=vector HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n1")
            response = connection.makefile("rb").read()
        assert response.startswith(b"HTTP/1.1 408 ")
        assert b'"code":"body_timeout"' in response


def test_run_of_a_client_that_left_is_stopped_before_its_next_layer(server: ServerProcess) -> None:
    connection = send_and_stay(server, 1)
    assert server.entered.take() == 1
    connection.close()
    server.wait_for_line(LEFT)
    server.gate.give(2)
    assert ask(server, 2).status_code == 200
    assert server.entered.take() == 2
    assert server.passed.take() == 2, "the run of request 1 went on"


def test_waiting_request_of_a_client_that_left_is_dropped(
    server: ServerProcess, pool: ThreadPoolExecutor
) -> None:
    running = begun(server, pool, 1)
    send_and_stay(server, 2).close()
    server.wait_for_line(LEFT)
    server.gate.give(2)
    assert running.result(SOON).status_code == 200
    assert ask(server, 3).status_code == 200
    assert server.entered.take() == 3, "request 2 was run"


def test_a_hundred_requests_at_once_are_answered_as_one_by_one(tmp_path: Path) -> None:
    network = tmp_path / "resnet18"
    shutil.copytree(ROOT / "tests/golden/networks/data/resnet18", network)
    # compiled at load: other sizes run in numpy, with other last digits, until they are compiled beside
    (network / "model.toml").write_text("[warm_up]\nshapes = [[1, 3, 64, 64]]\n")
    generator = np.random.default_rng(0)
    bodies = [npy(generator.standard_normal((1, 3, 64, 64), np.float32)) for _ in range(100)]

    async def ask_all(url: str, at_once: int) -> list[Any]:
        limits = httpx.Limits(max_connections=at_once)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=SOON) as client:
            requests = [client.post("/infer?trace=off", content=body) for body in bodies]
            responses = await asyncio.gather(*requests)
        assert {response.status_code for response in responses} == {200}
        return [response.json()["outputs"] for response in responses]

    with ServerProcess("--models", str(network), "--workers", "4", "--queue-size", "100") as server:
        serial = asyncio.run(ask_all(server.url, 1))
        assert asyncio.run(ask_all(server.url, 100)) == serial
    assert len({str(outputs) for outputs in serial}) == 100
