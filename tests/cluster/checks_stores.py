"""A server whose models lie in S3, as moto serves it: uploads under load, wrong checksums, a store that goes away."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.stores.folders import write_scale

POLL_SECONDS = 0.2
SOON = 60.0
SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
    "Signature=0"
}
"""For what moto lets nobody do without a name; it checks no signature."""
BODY = {"inputs": [{"data": [[1, 1]]}]}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code < 500
    except httpx.HTTPError:
        return False


class Bucket:
    """A bucket of a server that is a process of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.objects: dict[str, bytes] = {}
        self._start()

    def _start(self) -> None:
        program = shutil.which("moto_server", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert program is not None, "moto is not installed; make test-cluster installs it"
        self._process = subprocess.Popen(
            [program, "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: answers(f"{self.url}/moto-api/"))
        httpx.put(f"{self.url}/bucket").raise_for_status()

    def put(self, path: str, data: bytes) -> None:
        self.objects[path] = data
        httpx.put(f"{self.url}/bucket/models/{path}", content=data).raise_for_status()

    def put_scale(self, folder: Path, path: str, scale: float) -> None:
        for name, data in files_of(folder, scale).items():
            self.put(f"{path}/{name}", data)

    def delete(self, path: str) -> None:
        del self.objects[path]
        httpx.delete(f"{self.url}/bucket/models/{path}", headers=SIGNED).raise_for_status()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def come_back(self) -> None:
        """Start the server again; it knows nothing, so that all objects are sent again."""
        self._start()
        for path, data in sorted(self.objects.items()):
            self.put(path, data)


def files_of(folder: Path, scale: float) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in write_scale(folder / "made", scale).iterdir()}


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    made = Bucket()
    made.put_scale(tmp_path, "m/1", 1)
    yield made
    made.stop()


class Server:
    """A server of that bucket, as a process of its own."""

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self.log = folder / "log"
        port = free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SOON)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("KUIPER_", "AWS_"))},
            "AWS_ENDPOINT": bucket.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "not-to-be-shown",
            "KUIPER_CACHE": "",
        }
        flags = [
            "--models",
            "s3://bucket/models",
            "--model-control",
            "poll",
            "--poll-seconds",
            str(POLL_SECONDS),
            "--backend",
            "numpy",
            "--store-cache",
            str(folder / "cache"),
            "--no-access-log",
        ]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service", "serve", *flags, "--port", str(port)],
                env=environment,
                stderr=log,
                stdout=log,
            )

    def wait(self) -> "Server":
        until(lambda: answers(f"{self.client.base_url}/readyz") and self.get("/readyz").status_code == 200)
        return self

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)

    def scale(self, client: httpx.Client | None = None) -> float:
        answer = (client or self.client).post("/infer?model=m&trace=off", json=BODY)
        assert answer.status_code == 200, answer.text
        value: float = answer.json()["outputs"][0]["data"][0][0]
        return value

    def metric(self, name: str) -> float:
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def wait_polls(self, count: int, outcome: str = "listed") -> None:
        name = f'kuiper_polls_total{{outcome="{outcome}"}}'
        end = self.metric(name) + count
        until(lambda: self.metric(name) >= end)

    def changes(self) -> float:
        return self.metric("kuiper_poll_changes_total")

    def index(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.client.post("/v2/repository/index", json={}).json()
        return found

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self.client.close()

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(SOON) == 0
        self.client.close()


@pytest.fixture
def server(bucket: Bucket, tmp_path: Path) -> Iterator[Server]:
    started = Server(bucket, tmp_path).wait()
    yield started
    started.stop()
    assert "not-to-be-shown" not in started.log.read_text()


def test_what_does_not_change_is_not_loaded_again(server: Server) -> None:
    assert server.scale() == 1
    server.wait_polls(20)
    assert server.changes() == 0


def test_half_an_upload_is_never_loaded(server: Server, bucket: Bucket, tmp_path: Path) -> None:
    files = files_of(tmp_path, 2)
    text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    bucket.put("m/2/checksums", text.encode())
    for name, data in files.items():
        server.wait_polls(4)
        assert server.scale() == 1
        bucket.put(f"m/2/{name}", data)
    until(lambda: server.scale() == 2)


def test_no_request_fails_while_versions_come(server: Server, bucket: Bucket, tmp_path: Path) -> None:
    over = threading.Event()
    seen: list[set[float]] = []
    failures: list[BaseException] = []

    def ask() -> None:
        values: set[float] = set()
        seen.append(values)
        try:
            with httpx.Client(base_url=server.client.base_url, timeout=SOON) as client:
                while not over.is_set():
                    values.add(server.scale(client))
        except BaseException as error:
            failures.append(error)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    try:
        for version in range(2, 6):
            bucket.put_scale(tmp_path, f"m/{version}", version)
            until(lambda version=version: server.scale() == version)  # type: ignore[misc]  # bound now
        for name in files_of(tmp_path, 5):
            bucket.delete(f"m/5/{name}")
        until(lambda: server.scale() == 4)
    finally:
        over.set()
        for thread in asking:
            thread.join()
    assert failures == []
    assert all(values <= {1, 2, 3, 4, 5} and 4 in values for values in seen)


def test_a_wrong_checksum_is_refused(server: Server, bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("m/2/checksums", f"{'0' * 64}  model.bin\n{'0' * 64}  model.param\n".encode())
    bucket.put_scale(tmp_path, "m/2", 2)
    until(lambda: any(line.get("reason") for line in server.index()))
    assert server.scale() == 1
    assert any("is not what 2/checksums lists" in line.get("reason", "") for line in server.index())
    refused = server.changes()
    server.wait_polls(6)
    assert server.changes() == refused


def test_a_store_that_is_gone_changes_nothing(server: Server, bucket: Bucket, tmp_path: Path) -> None:
    bucket.stop()
    server.wait_polls(2, "failed")
    assert server.scale() == 1
    assert server.get("/readyz").status_code == 200
    bucket.come_back()
    bucket.put_scale(tmp_path, "m/2", 2)
    until(lambda: server.scale() == 2)
    log = server.log.read_text()
    assert log.count("models cannot be listed") == log.count("models can be listed again") == 1


def test_a_start_without_the_store_waits_for_it(bucket: Bucket, tmp_path: Path) -> None:
    bucket.stop()
    server = Server(bucket, tmp_path)
    try:
        until(lambda: answers(f"{server.client.base_url}/livez"))
        until(lambda: "cannot be read" in server.get("/readyz").text)
        assert server.get("/readyz").status_code == 503
        bucket.come_back()
        assert server.wait().scale() == 1
    finally:
        server.stop()


def test_two_processes_share_a_cache_and_a_killed_one_leaves_nothing(bucket: Bucket, tmp_path: Path) -> None:
    first = Server(bucket, tmp_path).wait()
    first.kill()
    views = tmp_path / "cache" / "views"
    assert len(list(views.iterdir())) == 2
    second, third = Server(bucket, tmp_path), Server(bucket, tmp_path)
    assert second.wait().scale() == third.wait().scale() == 1
    assert len(list(views.iterdir())) == 4
    second.stop()
    third.stop()
    assert list(views.iterdir()) == []
    assert len(list((tmp_path / "cache" / "objects").iterdir())) == 2


def test_objects_whose_names_are_tricks_change_nothing(
    server: Server, bucket: Bucket, tmp_path: Path
) -> None:
    bucket.put("m/empty/", b"")
    bucket.put("m/1/", b"")
    until(lambda: server.changes() == 1)
    assert server.scale() == 1
    bucket.put("evil/a%5C..%5Cb", b"x")
    until(lambda: any(line["name"] == "evil" for line in server.index()))
    bucket.put("m/1/MODEL.BIN", b"x")
    until(lambda: any("case does not count" in line.get("reason", "") for line in server.index()))
    assert server.scale() == 1
    bucket.put("m/%2e%2e/%2e%2e/x", b"x")
    server.wait_polls(2, "failed")
    assert server.scale() == 1
    assert not list(tmp_path.rglob("x"))
