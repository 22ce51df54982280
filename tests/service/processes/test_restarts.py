"""Restarts of two processes in which something goes wrong."""

import os
import re
import select
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic

import httpx
import pytest

from tests.service.models import add_model
from tests.service.processes.gated import FOLDER, GATED
from tests.service.processes.load import Load
from tests.service.processes.test_processes import RESTARTED, SERVES, children, start
from tests.service.server.process import SOON, ServerProcess

pytestmark = pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system")
NEW_ONE_LOADS = re.compile("loading models .* process=2")


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--trace-rate", "0") as started:
        yield started


def test_process_that_is_killed_while_it_is_replaced_gets_one_successor(server: ServerProcess) -> None:
    first = children(server)
    with Load(server.url, clients=4) as load:
        load.until_answered(5)
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(NEW_ONE_LOADS)
        os.kill(first[0], signal.SIGKILL)
        server.wait_for_line(RESTARTED)
        load.until_answered(5)
        second = children(server)
        assert len(second) == 2
        assert not set(second.values()) & set(first.values())
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_line(RESTARTED)
        third = children(server)
    assert len(third) == 2
    assert not set(third.values()) & set(second.values())
    assert load.responses == {200: load.responses.total()}
    assert all(len(reported.broken) <= 1 for reported in load.reports)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    folder = tmp_path / "pipes"
    folder.mkdir()
    return folder


@pytest.fixture
def gated(tmp_path: Path, gate: Path) -> Iterator[ServerProcess]:
    add_model(tmp_path / "gated", "vector", GATED)
    flags = ("--models", str(tmp_path / "gated"), "--processes", "2", "--backend", "numpy")
    environment = {FOLDER: str(gate)}
    with ServerProcess(*flags, module="tests.service.processes.gated", environment=environment) as started:
        yield started


def close(gate: Path) -> int:
    """Have the next process wait while it loads models; returns the pipe that shows when it does."""
    os.mkfifo(gate / "entered")
    os.mkfifo(gate / "gate")
    return os.open(gate / "entered", os.O_RDWR)


def until_entered(pipe: int) -> None:
    ready, _, _ = select.select([pipe], [], [], SOON)
    os.close(pipe)
    assert ready, "no process loads models"


def test_process_that_is_killed_is_started_again_when_its_successor_fails(
    gated: ServerProcess, gate: Path
) -> None:
    before = children(gated)
    pipe = close(gate)
    gated.process.send_signal(signal.SIGHUP)
    until_entered(pipe)
    new = children(gated)[2]
    (gate / "gate").rename(gate / "passed")
    for pid in (before[0], new):
        os.kill(pid, signal.SIGKILL)
    gated.wait_for_line(re.compile(r"restart aborted: process \d ended at its start: SIGKILL"))
    gated.wait_for_line(SERVES)
    after = children(gated)
    assert after.keys() == {0, 1}
    assert after[1] == before[1]


def test_signal_ends_a_process_that_loads_for_long(gated: ServerProcess, gate: Path) -> None:
    pids = children(gated)
    pipe = close(gate)
    gated.process.send_signal(signal.SIGHUP)
    gated.wait_for_line(NEW_ONE_LOADS)
    until_entered(pipe)
    pids |= children(gated)
    assert len(pids) == 3
    gated.terminate()
    assert gated.exit_code() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids.values())


def test_service_manager_that_signals_all_processes_ends_no_drain(gated: ServerProcess, gate: Path) -> None:
    handles = [os.pidfd_open(pid) for pid in children(gated).values()]
    pipe = close(gate)
    body = {"inputs": [{"data": [[1, -2, 3]]}]}
    with ThreadPoolExecutor() as threads:
        response = threads.submit(httpx.post, f"{gated.url}/infer", json=body, timeout=SOON)
        until_entered(pipe)
        gated.terminate()
        gated.wait_for_line(re.compile("draining: 1 requests"))
        ended, _, _ = select.select(handles, [], [], SOON)
        assert len(ended) == 1, "the process that has no request ends"
        for handle in handles:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
            os.close(handle)
        seen = monotonic() + 0.5  # signals are looked for ten times a second
        while monotonic() < seen:
            assert httpx.get(f"{gated.url}/readyz", timeout=SOON).status_code == 503
        (gate / "gate").write_bytes(b"")
        assert response.result().status_code == 200
    assert gated.exit_code() == 0


def test_second_signal_ends_the_drain_of_all(gated: ServerProcess, gate: Path) -> None:
    pipe = close(gate)
    body = {"inputs": [{"data": [[1, -2, 3]]}]}
    with ThreadPoolExecutor() as threads:
        response = threads.submit(httpx.post, f"{gated.url}/infer", json=body, timeout=SOON)
        until_entered(pipe)
        gated.terminate()
        gated.wait_for_line(re.compile("draining: 1 requests"))
        gated.terminate()
        assert response.result().status_code == 503
        (gate / "gate").write_bytes(b"")
    assert gated.exit_code() == 0


def test_processes_end_when_the_first_one_is_killed(gated: ServerProcess, gate: Path) -> None:
    pids = children(gated)
    pipe = close(gate)
    gated.process.send_signal(signal.SIGHUP)
    until_entered(pipe)
    handles = [os.pidfd_open(pid) for pid in (pids | children(gated)).values()]
    gated.process.kill()
    for handle in handles:
        ready, _, _ = select.select([handle], [], [], SOON)
        os.close(handle)
        assert ready, "a process is left"
