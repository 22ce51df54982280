"""Two processes that serve one port: the real command, its signals, and what clients see."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic

import httpx
import pytest

from tests.service.models import UNKNOWN_LAYER, add_model
from tests.service.processes.load import Load
from tests.service.server.process import SOON, ServerProcess, run_to_end
from tests.service.server.wire.wire import connected

pytestmark = pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system")
SERVES = re.compile(r"process (\d) serves")
RESTARTED = re.compile("restarted: 2 processes were replaced")


def start(models: Path, *flags: str) -> ServerProcess:
    return ServerProcess("--models", str(models), "--processes", "2", *flags)


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--model-control", "explicit", "--trace-rate", "0") as started:
        yield started


def samples(server: ServerProcess) -> dict[str, float]:
    """Return all samples of `/metrics`, by name with labels."""
    text = httpx.get(f"{server.url}/metrics", timeout=SOON).text
    pairs = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def answered(server: ServerProcess) -> float:
    return samples(server)['nv_inference_request_success{model="vector",version="1"}']


def http_counts(found: dict[str, float]) -> list[float]:
    """Return how many requests for inference were counted, for each method and status."""
    return [
        value
        for name, value in found.items()
        if "duration_seconds_count" in name and 'route="/infer"' in name
    ]


def children(server: ServerProcess) -> dict[int, int]:
    """Return the process ids of the children by the number of their slot, as their start times distinguish them."""
    reported = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    numbers = {}
    for pid in map(int, reported):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        slot = next(value for value in variables if value.startswith(b"_KUIPER_SLOT="))
        numbers[int(re.findall(rb'"number": (\d+)', slot)[0])] = pid
    return numbers


def until_started(server: ServerProcess, number: int, before: int) -> int:
    """Return the process of a slot once it is another than before."""
    until = monotonic() + SOON
    while True:
        with suppress(OSError, StopIteration):  # one that has ended has no variables any more
            found = children(server).get(number, before)
            if found != before:
                return found
        assert monotonic() < until, "no other process is started"


def test_counters_of_all_processes_are_added_up(server: ServerProcess) -> None:
    with Load(server.url, clients=8) as load:
        load.until_answered(20)
    assert load.responses == {200: load.responses.total()}
    total = load.responses.total()
    until = monotonic() + SOON
    while http_counts(found := samples(server)) != [total]:  # the last ones are sent before they are counted
        assert monotonic() < until, found
    assert found['nv_inference_request_success{model="vector",version="1"}'] == total
    assert found['kuiper_request_seconds_count{model="vector",version="1"}'] == total
    assert found['kuiper_workers{process="0"}'] == found['kuiper_workers{process="1"}']
    assert found['process_resident_memory_bytes{process="1"}'] > 1 << 20
    statistics = httpx.get(f"{server.url}/v2/models/vector/stats", timeout=SOON).json()["model_stats"][0]
    assert statistics["inference_stats"]["success"]["count"] == total
    assert httpx.get(f"{server.url}/stats", timeout=SOON).json()["models"]["vector"]["requests"] == total


def test_signal_that_restarts_may_reach_all_processes(server: ServerProcess) -> None:
    before = children(server)
    with Load(server.url, clients=6) as load:
        load.until_answered(10)
        for pid in before.values():
            os.kill(pid, signal.SIGHUP)
        load.until_answered(10)
        assert children(server) == before
        os.kill(before[1], signal.SIGKILL)
        os.kill(until_started(server, 1, before[1]), signal.SIGHUP)  # it hardly runs
        server.wait_for_line(SERVES)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(RESTARTED)
        load.until_answered(10)
    assert load.responses == {200: load.responses.total()}
    assert "SIGHUP" not in "".join(line for line in server.lines if "ERROR" in line)


def test_killed_process_takes_only_its_own_connections(server: ServerProcess) -> None:
    with Load(server.url, clients=6) as load:
        load.until_answered(20)
        killed = monotonic()
        os.kill(children(server)[0], signal.SIGKILL)
        server.wait_for_line(SERVES)
        restart = monotonic() - killed
        load.until_answered(20)
        new = samples(server)
    total = load.responses.total()
    assert load.responses == {200: total}
    # who connects again at once may meet a socket of the killed process that the kernel has not closed yet
    assert all(len(reported.broken) <= 2 for reported in load.reports), (
        "a client was cut off on a connection to another process"
    )
    assert total <= answered(server) <= total + len(load.broken), (
        "what the killed process has counted is kept"
    )
    assert sum(name.startswith("kuiper_workers{") for name in new) == 2
    assert max(reported.longest for reported in load.reports) < max(5.0, restart / 2), (
        "clients wait neither for the dead nor for the new one"
    )


def test_rolling_restart_fails_nothing(server: ServerProcess) -> None:
    before = children(server)
    with Load(server.url, clients=6) as load:
        load.until_answered(20)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(RESTARTED)
        load.until_answered(20)
    total = load.responses.total()
    assert (load.responses, load.broken) == ({200: total}, [])
    assert not set(children(server).values()) & set(before.values())
    assert answered(server) == total


def test_models_that_no_longer_load_leave_the_old_processes(server: ServerProcess, models: Path) -> None:
    before = children(server)
    add_model(models, "unknown", UNKNOWN_LAYER)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line(re.compile(r"restart aborted: process \d ended at its start: exit code 3"))
    assert children(server) == before
    assert any("model unknown is broken" in line for line in server.lines)
    assert httpx.get(f"{server.url}/readyz", timeout=SOON).status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_all(server: ServerProcess, number: signal.Signals) -> None:
    pids = children(server).values()
    server.process.send_signal(number)
    assert server.exit_code() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not any("Traceback" in line for line in server.lines)
    assert sum("model loaded" in line for line in server.lines) == 1, "lines of one start are not repeated"


def test_server_that_cannot_start_says_why_once_and_ends(tmp_path: Path) -> None:
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    ended = run_to_end("--models", str(tmp_path), "--processes", "2")
    assert ended.returncode == 3
    assert ended.stderr.count("model unknown is broken") == 1


def test_trace_of_another_process_is_not_found_in_words(server: ServerProcess) -> None:
    response = httpx.get(f"{server.url}/traces/nowhere", timeout=SOON)
    assert response.status_code == 404
    assert "another process of the server may hold the trace" in response.json()["error"]
    url = f"{server.url}/infer?model=vector&trace=stats"
    body, headers = {"inputs": [{"data": [[1, 2, 3]]}]}, {"X-Request-ID": "mine"}
    with httpx.Client(timeout=SOON) as client:  # of one connection, and so of one process
        assert client.post(url, json=body, headers=headers).status_code == 200
        found = client.get(f"{server.url}/traces/mine").json()
        (listed,) = client.get(f"{server.url}/traces").json()["traces"]
    assert (listed["request_id"], listed["process"]) == ("mine", found["process"])


@pytest.mark.parametrize(
    "path", ["/v2/repository/models/vector/unload", "/v2/repository/models/vector/load", "/v2/logging"]
)
def test_changes_by_api_are_refused_in_words(server: ServerProcess, path: str) -> None:
    refused = httpx.post(f"{server.url}{path}", json={}, timeout=SOON)
    assert refused.status_code == 403
    assert "--model-control poll" in refused.json()["error"]
    assert "SIGHUP" in refused.json()["error"]
    assert httpx.get(f"{server.url}/v2/models/vector/ready", timeout=SOON).status_code == 200
    assert httpx.get(f"{server.url}/v2/logging", timeout=SOON).status_code == 200


def sockets_of(pid: int) -> int:
    """Return how many sockets a process has."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += str(link.readlink()).startswith("socket:")
    return found


def taken_of(server: ServerProcess, count: int) -> list[int]:
    """Return how many of so many connections, which come together, each process took."""
    pids = list(children(server).values())
    before = [sockets_of(pid) for pid in pids]
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(server))
        until = monotonic() + SOON
        taken = [0]
        while sum(taken) < count and monotonic() < until:
            taken = [sockets_of(pid) - ours for pid, ours in zip(pids, before, strict=True)]
    assert sum(taken) == count
    return taken


def until_closed(server: ServerProcess, sockets: int) -> None:
    """Return when the processes have only so many sockets left."""
    until = monotonic() + SOON
    while sum(map(sockets_of, children(server).values())) > sockets:
        assert monotonic() < until, "connections are left"


def test_connections_that_come_together_are_spread(server: ServerProcess) -> None:
    sockets = sum(map(sockets_of, children(server).values()))
    rounds: list[list[int]] = []
    while len(rounds) < 10:  # on a busy machine one process may not run at all for some milliseconds
        rounds.append(taken_of(server, 64))
        until_closed(server, sockets)
        if min(rounds[-1]) >= 6:
            return
    pytest.fail(f"one process took nearly all connections: {rounds}")
