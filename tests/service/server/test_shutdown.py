"""SIGTERM: readiness fails, accepted requests finish, then exit 0."""

import re
import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.service.models import VECTOR, add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import SOON, ServerProcess
from tests.service.server.wire.wire import connected

DRAINING = re.compile("draining: [0-9]+ requests")
LEAVING = re.compile("not ready any more, requests are taken for 60 s")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return add_model(tmp_path, "blocking", BLOCKING)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as created:
        yield created


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--no-warm-up", "--workers", "1", *flags)


def ask(server: ServerProcess, number: int) -> httpx.Response:
    return httpx.post(f"{server.url}/infer", json={"inputs": [{"data": [number]}]}, timeout=SOON)


def begun(server: ServerProcess, pool: ThreadPoolExecutor, number: int) -> "Future[httpx.Response]":
    """Send a request and return when a worker is on it."""
    response = pool.submit(ask, server, number)
    assert server.entered.take() == number
    return response


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_idle_server_ends_at_once(models: Path, number: signal.Signals) -> None:
    with start(models) as server:
        server.process.send_signal(number)
        assert server.exit_code() == 0


def test_accepted_requests_are_answered_and_new_ones_are_not_taken(
    models: Path, pool: ThreadPoolExecutor
) -> None:
    with start(models) as server:
        running = begun(server, pool, 1)
        server.terminate()
        server.wait_for_line(DRAINING)
        assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
        ready = httpx.get(f"{server.url}/readyz", timeout=SOON)
        assert (ready.status_code, ready.json()["code"]) == (503, "shutting_down")
        refused = ask(server, 2)
        assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
        assert refused.headers["connection"] == "close"
        assert server.process.poll() is None
        server.gate.give()
        assert running.result(SOON).json()["outputs"][0]["data"] == [1]
        assert server.exit_code() == 0


def test_requests_are_answered_during_the_delay_on_connections_that_end(
    models: Path, pool: ThreadPoolExecutor
) -> None:
    with start(models, "--drain-delay-seconds", "60") as server, httpx.Client(timeout=SOON) as client:
        before = client.get(f"{server.url}/readyz")
        assert (before.status_code, "connection" in before.headers) == (200, False)
        running = begun(server, pool, 1)
        server.terminate()
        server.wait_for_line(LEAVING)
        ready = client.get(f"{server.url}/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "shutting_down")
        assert httpx.get(f"{server.url}/v2/health/ready", timeout=SOON).status_code == 503
        late = pool.submit(ask, server, 2)
        server.gate.give(2)
        for number, response in ((1, running.result(SOON)), (2, late.result(SOON))):
            assert response.json()["outputs"][0]["data"] == [number]
            assert response.headers["connection"] == "close"
        server.terminate()
        assert server.exit_code() == 0


def test_requests_in_the_queue_are_accepted_ones(models: Path, pool: ThreadPoolExecutor) -> None:
    with start(models, "--queue-size", "2") as server:
        responses = [begun(server, pool, 1)]
        responses += [pool.submit(ask, server, number) for number in (2, 3, 4)]
        refused = next(iter_done(responses[1:]))
        assert refused.status_code == 503
        server.terminate()
        server.wait_for_line(DRAINING)
        server.gate.give(3)
        assert sorted(response.result(SOON).status_code for response in responses) == [200, 200, 200, 503]
        assert server.exit_code() == 0


def iter_done(responses: "list[Future[httpx.Response]]") -> Iterator[httpx.Response]:
    return (response.result() for response in as_completed(responses, SOON))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_whose_models_are_being_loaded_ends_at_once(models: Path, number: signal.Signals) -> None:
    with ServerProcess("--models", str(models), until_ready=False) as server:
        server.entered.take()  # a layer that nothing interrupts is running
        assert (
            httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
        )  # the server takes signals itself by now
        server.process.send_signal(number)
        assert server.exit_code() == 0
    reported = (
        f"stopping on {number.name}, aborting the loading of models (0 of 1 models, compiling blocking [1])"
    )
    assert server.lines[-1].endswith(reported)


def test_model_that_is_being_loaded_for_a_client_is_aborted(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    add_model(tmp_path, "vector", VECTOR)
    with ServerProcess("--models", str(tmp_path), "--model-control", "explicit") as server:
        add_model(tmp_path, "blocking", BLOCKING)
        load = f"{server.url}/v2/repository/models/blocking/load"
        responses = [pool.submit(httpx.post, load, timeout=SOON) for _ in range(2)]
        server.entered.take()
        server.terminate()
        for response in responses:
            refused = response.result(SOON)
            assert (refused.status_code, refused.headers["connection"]) == (503, "close")
            assert refused.json()["error"].startswith("the server is shutting down")
        assert server.exit_code() == 0
    assert not any("Traceback" in line for line in server.lines)


@pytest.mark.parametrize("flags", [("--drain-seconds", "0.2"), ()], ids=["time is up", "second signal"])
def test_requests_that_do_not_finish_are_reported(
    models: Path, pool: ThreadPoolExecutor, flags: tuple[str, ...]
) -> None:
    with start(models, *flags) as server:
        running = begun(server, pool, 1)
        server.terminate()
        server.wait_for_line(DRAINING)
        if not flags:
            server.terminate()
        response = running.result(SOON)
        assert (response.status_code, response.json()["code"]) == (503, "shutting_down")
        server.gate.give()
        assert server.exit_code() == 0


def test_process_ends_without_a_worker_that_nothing_stops(models: Path, pool: ThreadPoolExecutor) -> None:
    with start(models, "--drain-seconds", "0") as server:
        running = begun(server, pool, 1)
        server.terminate()
        assert running.result(SOON).status_code == 503
        assert server.exit_code() == 0  # the layer still waits for the gate


@pytest.mark.parametrize(
    "begun_body", [b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"]
)
def test_clients_that_do_not_finish_their_bodies_are_reported(models: Path, begun_body: bytes) -> None:
    with start(models, "--drain-seconds", "0") as server, connected(server) as wire:
        wire.send(b"POST /infer HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n" + begun_body)
        assert wire.interim() == 100  # the body is being read
        server.terminate()
        response = wire.reply()
        assert (response.status, response.json()["code"]) == (503, "shutting_down")
        assert response.headers["connection"] == "close"
        assert server.exit_code() == 0
    assert not any("Exception" in line for line in server.lines)


def test_requests_that_are_sent_right_before_the_signal_are_answered(models: Path) -> None:
    body = b'{"inputs":[{"data":[1]}]}'
    head = b"POST /infer HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    with start(models) as server, ExitStack() as stack:
        wires = [stack.enter_context(connected(server)) for _ in range(8)]
        for wire in wires:
            wire.send(head % len(body) + body)
        server.terminate()
        server.gate.give(8)
        assert [wire.reply().status for wire in wires] == [200] * 8
        assert server.exit_code() == 0
