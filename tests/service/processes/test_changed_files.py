"""A process that is started anew, and finds other files than the others have read."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.models import add_versions
from tests.service.processes.test_processes import RESTARTED, SERVES, children, start
from tests.service.server.process import SOON, ServerProcess
from tests.service.traffic.conftest import BODY, scaled

pytestmark = pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system")
LOST = re.compile("process 0 cannot serve m, as others do: files changed")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    add_versions(tmp_path, "m", {"1": scaled(2.0)})
    return tmp_path


@pytest.fixture
def server(models: Path) -> Iterator[ServerProcess]:
    with start(models, "--no-warm-up", "--skip-broken", "--backend", "numpy") as started:
        yield started


def factors(server: ServerProcess) -> set[float]:
    """Return what answers are multiplied by, each on a connection of its own."""
    url = f"{server.url}/infer?model=m&trace=off"
    return {httpx.post(url, json=BODY, timeout=SOON).json()["outputs"][0]["data"][0][0] for _ in range(16)}


def test_process_that_reads_other_files_has_all_replaced(server: ServerProcess, models: Path) -> None:
    before = children(server)
    assert factors(server) == {2.0}
    param = models / "m" / "1" / "model.param"
    param.write_text(param.read_text().replace("2.0", "3.0"))
    os.kill(before[0], signal.SIGKILL)
    server.wait_for_line(re.compile("process 0 serves other files of m than the others"))
    server.wait_for_line(RESTARTED)
    assert factors(server) == {3.0}
    assert not set(children(server).values()) & set(before.values())


def test_process_that_reads_the_same_files_replaces_none(server: ServerProcess, models: Path) -> None:
    before = children(server)
    (models / "m" / "1" / "model.param").touch()
    os.kill(before[0], signal.SIGKILL)
    server.wait_for_line(SERVES)
    server.process.send_signal(signal.SIGHUP)
    server.wait_for_line(RESTARTED)
    assert not any("serves other files" in line for line in server.lines)


def test_broken_files_are_not_spread(server: ServerProcess, models: Path) -> None:
    before = children(server)
    add_versions(models, "n", {"1": scaled(3.0)})
    (models / "m" / "1" / "model.param").write_text("7767517")
    os.kill(before[0], signal.SIGKILL)
    server.wait_for_line(LOST)
    assert children(server)[1] == before[1]
