"""A server whose models lie in a bucket, as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from tests.cluster.buckets import CLOUDS, NAME, SOON, Bucket, free_port, responses, until

POLL_SECONDS = 0.1
_BODY = {"inputs": [{"data": [[1, 1]]}]}


class StoreServer:
    """A server that polls the models of a bucket.

    Args:
        bucket: the bucket; its models are below `models/`.
        folder: for its log and its cache.

    Attributes:
        log: its log.
        client: asks it.
    """

    def __init__(self, bucket: Bucket, folder: Path) -> None:
        self.log = folder / "log"
        port = free_port()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=SOON)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("KUIPER_", *CLOUDS))}
        flags = {
            "--models": f"{bucket.scheme}://{NAME}/models",
            "--model-control": "poll",
            "--poll-seconds": str(POLL_SECONDS),
            "--backend": "numpy",
            "--threads": "1",
            "--port": str(port),
        }
        words = [word for flag in flags.items() for word in flag]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service", "serve", *words],
                env={**own, "HOME": str(folder), "KUIPER_CACHE": str(folder / "cache"), **bucket.environment},
                stderr=log,
                stdout=log,
            )

    def wait_for_reason(self) -> str:
        """Wait until the server shows why it is not ready, as it has no models; returns what it says."""
        until(lambda: responses(f"{self.client.base_url}/livez"))
        until(lambda: "cannot be read" in self.get("/readyz").text)
        response = self.get("/readyz")
        assert response.status_code == 503
        assert "cannot be read" in response.text
        return response.text

    def wait(self) -> "StoreServer":
        """Wait until the server is ready."""
        until(lambda: responses(f"{self.client.base_url}/readyz") and self.get("/readyz").status_code == 200)
        return self

    def get(self, path: str) -> httpx.Response:
        """Ask for a path."""
        return self.client.get(path)

    def scale(self, model: str, client: httpx.Client | None = None) -> float:
        """Return what a model multiplies by, which has to be served."""
        response = self._infer(model, client or self.client)
        assert response.status_code == 200, response.text
        return _scale_in(response)

    def serves(self, model: str, scale: float) -> bool:
        """Return whether a model is served, and multiplies by that."""
        response = self._infer(model, self.client)
        return response.status_code == 200 and _scale_in(response) == scale

    def metric(self, name: str) -> float:
        """Return the sum of the samples of a metric."""
        lines = self.get("/metrics").text.splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))

    def wait_polls(self, count: int, outcome: str = "listed") -> None:
        """Wait for polls."""
        name = f'kuiper_polls_total{{outcome="{outcome}"}}'
        end = self.metric(name) + count
        until(lambda: self.metric(name) >= end)

    def changes(self) -> float:
        """Return how many changes polls found."""
        return self.metric("kuiper_poll_changes_total")

    def index(self) -> list[dict[str, Any]]:
        """Return the index of the models."""
        found: list[dict[str, Any]] = self.client.post("/v2/repository/index", json={}).json()
        return found

    def refuses(self, model: str, reason: str) -> bool:
        """Return whether a model, or what was added to it, is refused for that reason."""
        return any(line["name"] == model and reason in line.get("reason", "") for line in self.index())

    def kill(self) -> None:
        """Kill the server."""
        self._process.kill()
        self._process.wait()
        self.client.close()

    def stop(self) -> None:
        """Have the server end, and wait for that."""
        self._process.terminate()
        assert self._process.wait(SOON) == 0
        self.client.close()

    def _infer(self, model: str, client: httpx.Client) -> httpx.Response:
        return client.post(f"/infer?model={model}&trace=off", json=_BODY)


def _scale_in(response: httpx.Response) -> float:
    value: float = response.json()["outputs"][0]["data"][0][0]
    return value
