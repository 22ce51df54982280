"""Requests that are much work, of every kind, over HTTP: they are answered as others, by workers of their own."""

import asyncio
import gzip
import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient
from PIL import Image

from engine import Array
from service.config.settings import Settings
from service.heavy_work import LIGHT_ANSWER_BYTES, LIGHT_PACKED_BYTES, LIGHT_PIXELS, LIGHT_TEXT_BYTES
from service.images import decoder
from service.images.decoder import DECODER
from service.scheduling.job import Job
from service.scheduling.run_estimate import LIGHT_ROWS, RunEstimate
from service.scheduling.worker import WorkerPool
from tests.service.api.answers import bright, check_error, labels
from tests.service.codec.payloads import encoded, npy, npz
from tests.service.conftest import serving

pytestmark = pytest.mark.anyio
READY = "import sys, time; from service.images.frames import *; write_frame(sys.stdout.buffer, {}); "
SIDE = int(LIGHT_PIXELS**0.5) + 1
FEW = np.array([[-1, 0.5, 2]], np.float32)
ZEROS = np.zeros((LIGHT_PACKED_BYTES // 12 + 1, 3), np.float32)
MANY = np.random.default_rng(0).standard_normal((LIGHT_ANSWER_BYTES // 12 + 1, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def settings(models: Path) -> Settings:
    return Settings(models=models, workers=1)


@pytest.fixture(autouse=True)
def resumed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the requests that the pool for large requests continues."""
    found: list[int] = []
    take_over = WorkerPool._take_over

    def count(pool: WorkerPool, job: Job[Any]) -> None:
        found.append(1)
        take_over(pool, job)

    monkeypatch.setattr(WorkerPool, "_take_over", count)
    return found


def tensor(array: Array, spaces: int = 0) -> bytes:
    body = {"name": "pnnx_input_0", "shape": array.shape, "datatype": "FP32", "data": array.ravel().tolist()}
    return json.dumps({"inputs": [body]}).encode() + b" " * spaces


async def ask(client: AsyncClient, kind: str, body: bytes, query: str = "") -> Array:
    answer = await client.post(f"/infer?model=vector{query}", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 200, answer.text[:300]
    return np.array(answer.json()["outputs"][0]["data"], np.float32)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("application/json", tensor(FEW, LIGHT_TEXT_BYTES), FEW.clip(0)),
        ("text/csv", b"-1,0.5,2\n" + b"\n" * LIGHT_TEXT_BYTES, FEW.clip(0)),
        ("application/x-npz", npz(ZEROS, compressed=True), ZEROS),
        ("application/x-npy", npy(ZEROS), ZEROS),
    ],
)
async def test_bodies_that_are_much_work_to_decode(
    client: AsyncClient, resumed: list[int], kind: str, body: bytes, expected: Array
) -> None:
    # as JSON, millions of numbers take seconds
    headers = {"Content-Type": kind, "Accept": "application/x-npz"}
    answer = await client.post("/infer?model=vector", content=body, headers=headers)
    assert answer.status_code == 200, answer.text[:300]
    np.testing.assert_array_equal(np.load(BytesIO(answer.content))["1"], expected)
    assert resumed == [1]


@pytest.mark.parametrize(("side", "calls"), [(SIDE - 1, 0), (SIDE, 1)])
async def test_large_images(client: AsyncClient, resumed: list[int], side: int, calls: int) -> None:
    pixels = np.zeros((side, side), np.uint8)
    pixels[:, side // 10 * 3 : side // 10 * 4] = 255
    body = encoded(Image.fromarray(pixels))
    assert labels(await client.post("/infer?model=digit", content=body))[0] == "p3"
    assert len(resumed) == calls


async def test_progressive_images_that_take_as_long_as_larger_ones(
    client: AsyncClient, resumed: list[int]
) -> None:
    target = BytesIO()
    Image.new("L", (1500, 1500), 255).save(target, "JPEG", progressive=True)
    assert labels(await client.post("/infer?model=digit", content=target.getvalue()))
    assert len(resumed) == 1


async def test_many_rows_and_large_answers(client: AsyncClient, resumed: list[int]) -> None:
    assert len(MANY) > LIGHT_ROWS
    for _ in range(2):  # the first run tells that those of so many rows are short; the answer stays large
        np.testing.assert_array_equal(await ask(client, "application/x-npy", npy(MANY)), MANY.clip(0))
    assert resumed == [1, 1]


async def test_large_captures(client: AsyncClient, resumed: list[int]) -> None:
    body = npy(MANY)
    assert len(await ask(client, "application/x-npy", body, "&capture=0")) == len(MANY)
    assert resumed == [1]


async def test_documents_of_v2_that_unpack_to_much(client: AsyncClient, resumed: list[int]) -> None:
    body = gzip.compress(tensor(FEW, LIGHT_TEXT_BYTES))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = await client.post("/v2/models/vector/infer", content=body, headers=headers)
    assert answer.json()["outputs"][0]["data"] == [0, 0.5, 2]
    assert resumed == [1]


async def test_large_answers_of_v2(client: AsyncClient, resumed: list[int]) -> None:
    small = {"name": "pnnx_input_0", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    assert (await client.post("/v2/models/vector/infer", json={"inputs": [small]})).status_code == 200
    assert resumed == []
    answer = await client.post("/v2/models/vector/infer", content=tensor(MANY))
    read = np.array(answer.json()["outputs"][0]["data"], np.float32).reshape(-1, 3)
    np.testing.assert_array_equal(read, MANY.clip(0))
    assert resumed == [1]


@pytest.mark.parametrize(("coding", "calls"), [("identity", 0), ("gzip", 1)])
async def test_large_binary_answers_of_v2_that_are_compressed(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, resumed: list[int], coding: str, calls: int
) -> None:
    monkeypatch.setattr(RunEstimate, "is_large", lambda *_: False)
    text = json.dumps(
        {
            "inputs": [
                {
                    "name": "pnnx_input_0",
                    "shape": MANY.shape,
                    "datatype": "FP32",
                    "parameters": {"binary_data_size": MANY.nbytes},
                }
            ],
            "parameters": {"binary_data_output": True},
        }
    ).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)), "Accept-Encoding": coding}
    for _ in range(2):
        answer = await client.post("/v2/models/vector/infer", content=text + MANY.tobytes(), headers=headers)
        assert answer.status_code == 200
        assert answer.headers.get("Content-Encoding", "identity") == coding
        read = np.frombuffer(answer.content[-MANY.nbytes :], np.float32).reshape(MANY.shape)
        np.testing.assert_array_equal(read, MANY.clip(0))
    assert len(resumed) == 2 * calls


@pytest.mark.parametrize(
    ("does", "patience", "status", "code"),
    [
        ("time.sleep(600)", 0.005, 422, "decoding_too_long"),
        ("read_frame(sys.stdin.buffer, 1 << 30)", 3.0, 503, "decoder_failed"),
    ],
    ids=["hangs", "dies"],
)
async def test_a_decoder_that_hangs_or_dies_costs_its_own_request_only(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, does: str, patience: float, status: int, code: str
) -> None:
    large = encoded(Image.new("L", (SIDE, SIDE)))
    async with serving(settings) as client:
        DECODER.close()
        before = DECODER.ended[code]
        with monkeypatch.context() as patched:
            patched.setattr(DECODER, "_command", (sys.executable, "-c", READY + does))
            patched.setattr(decoder, "_PATIENCE", patience)  # for this image only: the next has a minute
            task = asyncio.create_task(client.post("/infer?model=digit", content=large))
            assert labels(await client.post("/infer?model=digit", content=bright(4)))[0] == "p4"
            check_error(await task, status, code)
        assert labels(await client.post("/infer?model=digit", content=large))
        metrics = (await client.get("/metrics")).text
    assert f'kuiper_image_decoders_ended_total{{code="{code}"}} {before + 1.0}' in metrics
    assert "kuiper_image_decoders 1.0" in metrics
    assert not DECODER.is_running, "it ends with the server"
