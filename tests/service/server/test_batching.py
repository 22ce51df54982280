"""Requests that a real server runs together."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.codec.payloads import npy
from tests.service.models import add_model
from tests.service.server.process import ROOT, SOON, ServerProcess

SOFTMAX = """
pnnx.Input  in   0 1 0 #0=(1,3)f32
nn.Softmax  soft 1 1 0 1 dim=0
pnnx.Output out  1 0 1
"""


async def ask_all(url: str, bodies: list[bytes], at_once: int) -> list[Any]:
    limits = httpx.Limits(max_connections=at_once)
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=SOON) as client:
        responses = await asyncio.gather(*(client.post("/infer?trace=off", content=body) for body in bodies))
    assert {response.status_code for response in responses} == {200}
    return [response.json()["outputs"][0]["data"] for response in responses]


NETWORK = ROOT / "tests/golden/networks/data/resnet18"
FLAGS = ("--models", str(NETWORK), "--queue-size", "100", "--workers", "2")
SIZES = np.random.default_rng(0).integers(1, 4, 40)
"""Numbers of rows of the requests."""


@pytest.fixture(scope="module")
def bodies() -> list[bytes]:
    generator = np.random.default_rng(1)
    return [npy(generator.standard_normal((size, 3, 64, 64), np.float32)) for size in SIZES]


@pytest.fixture(scope="module")
def serial(bodies: list[bytes]) -> list[Any]:
    """What a server without batching responds, one request at a time."""
    with ServerProcess(*FLAGS) as server:
        return asyncio.run(ask_all(server.url, bodies, 1))


def test_responses_are_those_of_a_server_that_batches_nothing(bodies: list[bytes], serial: list[Any]) -> None:
    with ServerProcess(*FLAGS, "--max-batch-size", "8") as server:
        together = asyncio.run(ask_all(server.url, bodies, 40))
        stats = httpx.get(f"{server.url}/v2/models/resnet18/stats", timeout=SOON).json()["model_stats"][0]
    for one, other in zip(serial, together, strict=True):
        expected = np.array(one, np.float32)
        np.testing.assert_allclose(np.array(other), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert stats["inference_count"] == SIZES.sum()
    assert stats["execution_count"] < len(bodies)
    assert max(batch["batch_size"] for batch in stats["batch_stats"]) > 3


def test_model_that_mixes_rows_is_served_one_by_one(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "softmax", SOFTMAX, "[batching]\nmax_batch_size = 4\n")
    with ServerProcess("--models", str(folder)) as server:
        detail = httpx.get(f"{server.url}/models/softmax", timeout=SOON).json()
        config = httpx.get(f"{server.url}/v2/models/softmax/config", timeout=SOON).json()
        bodies = [npy(np.full((1, 3), number, np.float32)) for number in range(20)]
        responses = asyncio.run(ask_all(server.url, bodies, 20))
    assert detail["max_batch_size"] == 1
    assert "depends on what else" in detail["batching_refused"]
    assert config["max_batch_size"] == 0
    assert config["parameters"]["batching_refused"]["string_value"] == detail["batching_refused"]
    assert any("batching refused" in line and "depends on what else" in line for line in server.lines)
    assert responses == [[[1, 1, 1]]] * 20
