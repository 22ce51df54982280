"""Two processes that share the traffic of a model: a version that fails in one of them loses its share in both."""

import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import numpy as np
import pytest

from tests.engine.models import write_model
from tests.service.models import add_versions
from tests.service.processes.test_processes import SERVES, children, samples, start
from tests.service.server.process import SOON, ServerProcess
from tests.service.traffic.conftest import BODY, scaled
from tests.service.traffic.test_rollback import HALVES, WIDE

pytestmark = pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system")
ROLLED_BACK = re.compile("version rolled back .*version=4")
PATH = "/models/m/traffic"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    add_versions(tmp_path, "m", {"1": scaled(2.0)})
    (tmp_path / "m" / "4").mkdir()
    write_model(tmp_path / "m" / "4", WIDE, {"scale.data": np.ones((1, 4), np.float32)})
    (tmp_path / "m" / "model.toml").write_text(HALVES)
    flags = ("--no-warm-up", "--backend", "numpy", "--model-control", "explicit")
    with start(tmp_path, *flags) as started:
        yield started


def ask(server: ServerProcess, requests: int) -> list[int]:
    """Return the statuses of requests that name no version, each on a connection of its own."""
    url = f"{server.url}/infer?model=m&trace=off"
    return [httpx.post(url, json=BODY, timeout=SOON).status_code for _ in range(requests)]


def shares(server: ServerProcess) -> list[dict[str, float]]:
    """Return the shares that each process gives to versions now."""
    found = samples(server)
    pattern = 'kuiper_traffic_share{{model="m",process="{}",version="{}"}}'
    return [{one: found[pattern.format(number, one)] for one in "14"} for number in sorted(children(server))]


def until_rolled_back(server: ServerProcess) -> None:
    """Return once version 4 has no share in either process: the other one hears of it a moment later."""
    until = monotonic() + SOON
    while shares(server) != [{"1": 1.0, "4": 0.0}] * 2:
        assert monotonic() < until, "the other process does not follow"


def traffic(server: ServerProcess, path: str = PATH, method: str = "GET") -> dict[str, Any]:
    answer = httpx.request(method, f"{server.url}{path}", timeout=SOON)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def rollbacks(server: ServerProcess) -> dict[str, float]:
    found = samples(server)
    pattern = 'kuiper_traffic_rollbacks_total{{cause="{}",model="m"}}'
    return {cause: found[pattern.format(cause)] for cause in ("errors", "request")}


def test_what_fails_in_one_process_is_rolled_back_in_all_and_stays_so(server: ServerProcess) -> None:
    with httpx.Client(timeout=SOON) as client:  # one connection, which leads to one of the processes
        while not any("version rolled back" in line for line in server.lines):
            client.post(f"{server.url}/infer?model=m&trace=off", json=BODY)
    server.wait_for_line(ROLLED_BACK)
    until_rolled_back(server)
    traffic(server, f"{PATH}/rollback", "POST")
    assert rollbacks(server) == {"errors": 1, "request": 0}, "one of the processes counts it"
    os.kill(children(server)[0], signal.SIGKILL)
    server.wait_for_line(SERVES)
    assert shares(server) == [{"1": 1.0, "4": 0.0}] * 2
    assert ask(server, 20) == [200] * 20
    back = traffic(server)["versions"][1]["rolled_back"]
    assert back["cause"] == "errors"
    assert shares(server) == [{"1": 1.0, "4": 0.0}] * 2
    traffic(server, f"{PATH}/rollback", "DELETE")
    assert shares(server) == [{"1": 0.5, "4": 0.5}] * 2
    os.kill(children(server)[1], signal.SIGKILL)
    server.wait_for_line(SERVES)
    assert shares(server) == [{"1": 0.5, "4": 0.5}] * 2


def test_processes_that_judge_at_one_time_count_a_rollback_once(server: ServerProcess) -> None:
    def send(_: int) -> None:
        with httpx.Client(timeout=SOON) as client:
            for _ in range(60):
                client.post(f"{server.url}/infer?model=m&trace=off", json=BODY)

    for count in (1, 2, 3):
        with ThreadPoolExecutor(6) as clients:
            list(clients.map(send, range(6)))
        server.wait_for_line(ROLLED_BACK)
        until_rolled_back(server)
        traffic(server, f"{PATH}/rollback", "DELETE")  # once all that was told before is done
        assert rollbacks(server) == {"errors": count, "request": 0}
    assert sum("version rolled back" in line for line in server.lines) == 3


def test_any_process_tells_what_all_have_counted(server: ServerProcess) -> None:
    statuses = ask(server, 8)
    for path in ("/models/m", PATH):
        found = traffic(server, path)
        versions = found.get("traffic", found)["versions"]
        assert [one["requests"] for one in versions] == [statuses.count(200), statuses.count(422)]
        assert sum(one["seen"] for one in versions) == pytest.approx(1)
    (listed,) = traffic(server, "/models")["models"]
    assert sum(one["requests"] for one in listed["traffic"]["versions"]) == len(statuses)
    traffic(server, f"{PATH}/rollback", "POST")
    assert rollbacks(server) == {"errors": 0, "request": 1}
    assert traffic(server)["rollbacks"]["request"] == 1
