"""How the process starts, and how it refuses to."""

import re
import socket
from pathlib import Path

import httpx
import pytest

from tests.service.models import UNKNOWN_LAYER, VECTOR, add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import SOON, ServerProcess, run_to_end


def test_one_model_is_served_from_its_own_folder(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "vector", VECTOR)
    with ServerProcess("--models", str(folder), module="service.cli") as server:
        response = httpx.post(f"{server.url}/infer", json={"inputs": [{"data": [[-1, 0, 1]]}]}, timeout=SOON)
        assert response.json()["outputs"][0]["data"] == [[0, 0, 1]]
        assert response.json()["model"] == "vector"
        server.terminate()
        assert server.exit_code() == 0


def test_broken_model_keeps_the_server_from_starting(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    ended = run_to_end("--models", str(tmp_path))
    assert ended.returncode == 3
    assert "Traceback" not in ended.stderr
    (reported,) = re.findall(r"model unknown is broken: .*", ended.stderr)
    assert "1 unsupported operator: nn.RELU relu" in reported
    assert "--skip-broken" in ended.stderr


def test_broken_model_can_be_skipped(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    with ServerProcess("--models", str(tmp_path), "--skip-broken") as server:
        models = httpx.get(f"{server.url}/models", timeout=SOON).json()["models"]
        assert [(model["name"], model["state"]) for model in models] == [
            ("unknown", "broken"),
            ("vector", "ready"),
        ]
        assert "nn.RELU relu" in models[0]["reason"]
        assert httpx.get(f"{server.url}/readyz", timeout=SOON).status_code == 200
        assert httpx.post(f"{server.url}/infer?model=unknown", content=b"1", timeout=SOON).status_code == 503


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_no_models_is_said_in_one_line(tmp_path: Path, folder: str) -> None:
    ended = run_to_end("--models", str(tmp_path / folder))
    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    assert re.search(r"ERROR +(there is no folder|no models in)", ended.stderr)


def test_port_that_is_taken_is_said_in_one_line_before_models_are_looked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_to_end("--models", str(tmp_path / "nowhere"), "--port", str(port))
    assert ended.returncode == 3
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.rstrip().endswith(
        f"ERROR   127.0.0.1:{port}: address already in use; "
        "choose another port with --port, or a free one with --port 0"
    )


def test_port_is_open_while_models_are_loaded(tmp_path: Path) -> None:
    add_model(tmp_path, "blocking", BLOCKING)
    add_model(tmp_path, "vector", VECTOR)
    with ServerProcess("--models", str(tmp_path), until_ready=False) as server:
        assert server.entered.take() == 0  # the run of zeros that warms the model up
        assert httpx.get(f"{server.url}/livez", timeout=SOON).status_code == 200
        assert httpx.get(f"{server.url}/metrics", timeout=SOON).status_code == 200
        ready = httpx.get(f"{server.url}/readyz", timeout=SOON)
        assert (ready.status_code, ready.json()["code"]) == (503, "not_ready")
        assert re.search(r"\([01] of 2 models, compiling blocking \[1\]\)$", ready.json()["error"])
        for path in ("/infer?model=vector", "/v2/models/vector/infer", "/v2/repository/models/vector/load"):
            response = httpx.post(f"{server.url}{path}", json={}, timeout=SOON)
            assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        server.gate.give()
        server.wait_for_line(re.compile("running on"))
        assert httpx.get(f"{server.url}/readyz", timeout=SOON).status_code == 200


NOTHING_TO_WRITE = ("env", "-i", "sh", "-c", 'ulimit -f 0; exec "$@"', "sh")
"""Runs a command without an environment, and without a byte that it could write to a file, as on a full disk."""


def test_server_needs_no_environment_and_writes_no_file(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    with ServerProcess("--models", str(tmp_path), module="service.cli", within=NOTHING_TO_WRITE) as server:
        response = httpx.post(f"{server.url}/infer", json={"inputs": [{"data": [[-1, 0, 1]]}]}, timeout=SOON)
        assert response.status_code == 200
        large = httpx.post(f"{server.url}/infer", files={"file": ("large.npy", bytes(8 << 20))}, timeout=SOON)
        assert large.status_code == 422
        server.terminate()
        assert server.exit_code() == 0


def test_setting_that_cannot_be_is_said() -> None:
    ended = run_to_end("--workers", "many")
    assert ended.returncode == 2
    assert ended.stderr.startswith("kuiper: workers: input should be a valid integer")


def test_start_shows_what_was_taken_from_where(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    with ServerProcess("--models", str(tmp_path), "--workers", "3", "--max-run-bytes", "123456789") as server:
        reported = "\n".join(server.lines)
    assert re.search(r"3 workers of \d+ threads? on \d+ CPUs?: (the cores|a quota)", reported)
    assert re.search(r"\d+ MiB of memory: .*; workers 3, .*max_run_bytes 123456789", reported)
