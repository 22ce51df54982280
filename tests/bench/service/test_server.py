"""The servers that are measured: how this one is started, and when it is ready."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from tests.bench.service import server
from tests.bench.service.candidates import candidates
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import MeasuredServer

SLEEPS = ("sleep", "60")


@pytest.fixture
def asked() -> Iterator[tuple[int, list[str]]]:
    """Answer as a server does one of whose processes more serves at each reading of the metrics; its port and paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            for number in range(paths.count("/metrics")):
                self.wfile.write(f'kuiper_workers{{process="{number}"}} 1\n'.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = Thread(target=listener.serve_forever, args=(0.01,))
        thread.start()
        yield listener.server_port, paths
        listener.shutdown()
        thread.join()


@pytest.mark.parametrize(("processes", "paths"), [(1, ["/readyz"]), (2, ["/readyz", "/metrics", "/metrics"])])
def test_all_processes_are_waited_for(asked: tuple[int, list[str]], processes: int, paths: list[str]) -> None:
    port, found = asked
    with MeasuredServer(SLEEPS, port, "/readyz", processes=processes) as measured:
        assert found == paths
        assert measured.ready_seconds > 0


def test_server_of_which_a_process_does_not_come_is_ended(
    asked: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "START_SECONDS", 0.2)
    measured = MeasuredServer(SLEEPS, asked[0], "/readyz", processes=1000)
    with pytest.raises(TimeoutError, match="^sleep 60 was not ready after"), measured:
        pass
    assert not Path(f"/proc/{measured.pid}").exists()


@pytest.mark.parametrize(
    ("workers", "one", "two"),
    [(1, ("1", "1"), ("1", "2")), (2, ("2", "1"), ("1", "2")), (8, ("8", "1"), ("4", "2"))],
)
def test_workers_are_divided_among_processes(
    tmp_path: Path, workers: int, one: tuple[str, str], two: tuple[str, str]
) -> None:
    array = np.zeros((1, 2), np.float32)
    model = ServedModel("net", tmp_path, array, b"", array, array)
    for candidate, expected in zip(candidates(tmp_path), (one, two), strict=True):
        started = candidate.start(model, tmp_path, workers)
        flags = dict(zip(started.command[4:-1], started.command[5:], strict=True))
        assert (flags["--workers"], flags["--processes"]) == expected
        assert flags["--threads"] == "1"
        assert started.processes == int(flags["--processes"])
