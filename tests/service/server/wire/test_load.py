"""Inference requests while the server is full, while clients leave, and while it ends."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.models import add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import SOON, ServerProcess
from tests.service.server.wire.wire import Ask, Reply, Wire, ask, dial

DRAINING = re.compile("draining: [0-9]+ requests")
FORMS = [Ask.plain, Ask.escaped]
Form = Callable[[Ask], bytes]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_model(tmp_path_factory.mktemp("models"), "blocking", BLOCKING)


@pytest.fixture
def wires() -> Iterator[list[Wire]]:
    created: list[Wire] = []
    yield created
    for wire in created:
        wire.close()


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--no-warm-up", "--workers", "1", *flags)


@pytest.fixture(scope="module")
def shared_small_queue(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--queue-size", "1", "--log-format", "json") as started:
        yield started
        end(started)


@pytest.fixture
def small_queue(shared_small_queue: ServerProcess) -> ServerProcess:
    """A server whose queue holds one request."""
    shared_small_queue.reset()
    return shared_small_queue


@pytest.fixture(scope="module")
def shared_small_buffers(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--max-buffered-bytes", "100") as started:
        yield started
        end(started)


@pytest.fixture
def small_buffers(shared_small_buffers: ServerProcess) -> ServerProcess:
    """A server that buffers no more than 100 bytes of bodies."""
    shared_small_buffers.reset()
    return shared_small_buffers


@pytest.fixture(scope="module")
def shared_short_timeout(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--timeout", "3") as started:  # a busy machine needs a part of it to begin a run
        yield started
        end(started)


@pytest.fixture
def short_timeout(shared_short_timeout: ServerProcess) -> ServerProcess:
    """A server whose requests time out after three seconds."""
    shared_short_timeout.reset()
    return shared_short_timeout


def number(value: int, *headers: tuple[str, str]) -> Ask:
    return Ask("/infer", b'{"inputs": [{"data": [%d]}]}' % value, headers)


def begin(server: ServerProcess, wires: list[Wire], *packets: bytes) -> Wire:
    """Send a request on a connection of its own."""
    wire = dial(server)
    wires.append(wire)
    wire.send(*packets)
    return wire


def queue(server: ServerProcess, wires: list[Wire], *values: int) -> list[Wire]:
    """Have the first of some requests run, and the others wait."""
    running = begin(server, wires, number(values[0]).plain())
    assert server.entered.take() == values[0]
    waiting = [begin(server, wires, number(value).plain()) for value in values[1:]]
    while count_waiting(server) < len(waiting):
        pass
    return [running, *waiting]


def count_waiting(server: ServerProcess) -> int:
    text = httpx.get(f"{server.url}/metrics", timeout=SOON).text
    (count,) = re.findall(r"^nv_inference_pending_request_count\{.*\} (\d+)", text, re.MULTILINE)
    return int(count)


def count_left(server: ServerProcess) -> list[int]:
    """Return the numbers of failed requests, of responses with status 499, and of cancelled requests."""
    (stats,) = httpx.get(f"{server.url}/v2/models/blocking/stats", timeout=SOON).json()["model_stats"]
    metrics = httpx.get(f"{server.url}/metrics", timeout=SOON).text
    counts = [stats["inference_stats"]["fail"]["count"]]
    for pattern in (
        r'request_duration_seconds_count\{.*"499".*"/infer".*\} (\d+)',
        r'nv_inference_request_failure\{.*reason="CANCELED".*\} (\d+)',
    ):
        found = re.search(pattern, metrics)
        counts.append(int(found[1]) if found else 0)
    return counts


def outputs(reply: Reply) -> list[int]:
    assert reply.status == 200, reply.body
    data: list[int] = reply.json()["outputs"][0]["data"]
    return data


def end(server: ServerProcess) -> None:
    server.terminate()
    assert server.exit_code() == 0


@pytest.mark.parametrize("form", FORMS)
def test_full_queue_is_reported(small_queue: ServerProcess, wires: list[Wire], form: Form) -> None:
    answered = queue(small_queue, wires, 1, 2)
    refused = ask(small_queue, form(number(3)))
    assert (refused.status, refused.json()["code"]) == (503, "queue_full")
    assert int(refused.headers["retry-after"]) >= 1
    small_queue.gate.give(2)
    assert [outputs(wire.reply()) for wire in answered] == [[1], [2]]


@pytest.mark.parametrize("form", FORMS)
def test_queue_that_fills_while_a_body_comes_is_reported(
    small_queue: ServerProcess, wires: list[Wire], form: Form
) -> None:
    packet = form(number(3))
    late = begin(small_queue, wires, packet[:-1])
    answered = queue(small_queue, wires, 1, 2)
    late.send(packet[-1:])
    refused = late.reply()
    assert (refused.status, refused.json()["code"]) == (503, "queue_full")
    assert "retry-after" in refused.headers
    small_queue.gate.give(2)
    assert [outputs(wire.reply()) for wire in answered] == [[1], [2]]


@pytest.mark.parametrize("form", FORMS)
def test_full_buffers_are_reported(small_buffers: ServerProcess, wires: list[Wire], form: Form) -> None:
    running = begin(small_buffers, wires, number(1, ("X-A", "b")).plain())
    assert small_buffers.entered.take() == 1
    refused = ask(small_buffers, form(Ask("/infer", bytes(90))))
    assert (refused.status, refused.json()["code"]) == (503, "buffers_full")
    assert refused.headers["connection"] == "close"
    assert int(refused.headers["retry-after"]) >= 1
    small_buffers.gate.give()
    assert outputs(running.reply()) == [1]
    small_buffers.gate.give()
    assert outputs(ask(small_buffers, form(number(2)))) == [2]


@pytest.mark.parametrize("form", FORMS)
def test_client_that_leaves_while_the_model_runs_is_counted_and_forgotten(
    small_queue: ServerProcess, wires: list[Wire], form: Form
) -> None:
    before = count_left(small_queue)
    leaving = begin(small_queue, wires, form(number(1, ("X-Request-ID", "left"))))
    assert small_queue.entered.take() == 1
    leaving.close()
    small_queue.wait_for_line(re.compile('"left".*"status": ?499|"status": ?499.*"left"'))
    small_queue.gate.give()
    small_queue.gate.give()
    assert outputs(ask(small_queue, number(2).plain())) == [2]
    assert [after - count for after, count in zip(count_left(small_queue), before, strict=True)] == [1, 1, 1]


def test_clients_that_leave_hold_no_room(small_buffers: ServerProcess, wires: list[Wire]) -> None:
    for _ in range(20):
        begin(small_buffers, wires, number(1).plain()[:-1]).close()
        small_buffers.wait_for_line(re.compile("status=499"))
    small_buffers.gate.give()
    assert outputs(ask(small_buffers, number(2).plain())) == [2]


def test_what_was_taken_is_answered_while_the_server_drains(models: Path, wires: list[Wire]) -> None:
    with start(models) as server:
        half = number(3).plain()
        late = begin(server, wires, half[:-1])
        answered = queue(server, wires, 1, 2)
        idle = begin(server, wires)
        server.terminate()
        server.wait_for_line(DRAINING)
        refused = ask(server, number(4).plain())
        assert (refused.status, refused.json()["code"]) == (503, "shutting_down")
        idle.send(number(5).plain())
        assert idle.reply().status == 503
        server.gate.give(3)
        assert [outputs(wire.reply()) for wire in answered] == [[1], [2]]
        late.send(half[-1:])
        assert outputs(late.reply()) == [3]
        assert server.exit_code() == 0


@pytest.mark.parametrize("form", FORMS)
def test_drain_timeout_is_reported_to_those_who_wait(models: Path, wires: list[Wire], form: Form) -> None:
    with start(models, "--drain-seconds", "0.2") as server:
        running = begin(server, wires, form(number(1)))
        assert server.entered.take() == 1
        server.terminate()
        reply = running.reply()
        assert (reply.status, reply.json()["code"]) == (503, "shutting_down")
        server.gate.give()
        assert server.exit_code() == 0


@pytest.mark.parametrize("form", FORMS)
def test_body_that_never_comes_does_not_keep_the_server(models: Path, wires: list[Wire], form: Form) -> None:
    with start(models, "--timeout", "1") as server:
        waiting = begin(server, wires, form(number(1))[:-1])
        assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200, (
            "it has read what came before"
        )
        server.terminate()
        assert waiting.reply().status == 408
        assert server.exit_code() == 0


@pytest.mark.parametrize("form", FORMS)
def test_deadline_is_reported(short_timeout: ServerProcess, wires: list[Wire], form: Form) -> None:
    running = begin(short_timeout, wires, form(number(1)))
    assert short_timeout.entered.take() == 1
    reply = running.reply()
    assert (reply.status, reply.json()["code"]) == (504, "timeout")
    short_timeout.gate.give(2)
    running.send(form(number(2)))
    assert outputs(running.reply()) == [2]
