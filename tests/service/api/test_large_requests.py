"""Large requests of every kind, over HTTP: they are answered as others, and decoded in processes of their own."""

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
from service.codec.json_document import LARGE_BYTES
from service.codec.json_text import LARGE_BYTES as LARGE_RESPONSE
from service.codec.npz import LARGE_BYTES as LARGE_ARCHIVE
from service.config.limits import Limits
from service.config.settings import Settings
from service.decoding import DECODERS, decoder
from service.images.preparation import LARGE_PIXELS
from service.scheduling import worker
from service.scheduling.job import Job
from tests.service.api.responses import bright, check_error, labels
from tests.service.codec.payloads import encoded, npy, npz
from tests.service.conftest import serving

pytestmark = pytest.mark.anyio
READY = "import sys, time; from service.decoding.frames import *; write_frame(sys.stdout.buffer, {}); "
SIDE = int(LARGE_PIXELS**0.5) + 1
FEW = np.array([[-1, 0.5, 2]], np.float32)
ZEROS = np.zeros((LARGE_ARCHIVE // 12 + 1, 3), np.float32)
MANY = np.random.default_rng(0).standard_normal((LARGE_RESPONSE // 12 + 1, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def settings(models: Path) -> Settings:
    return Settings(models=models, workers=1)


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count the requests that continue where there is a decoder."""
    found: list[int] = []
    go_on = worker.go_on_with_decoder

    def count(job: Job[Any]) -> None:
        found.append(1)
        go_on(job)

    monkeypatch.setattr(worker, "go_on_with_decoder", count)
    return found


def tensor(array: Array, spaces: int = 0) -> bytes:
    body = {"name": "pnnx_input_0", "shape": array.shape, "datatype": "FP32", "data": array.ravel().tolist()}
    return json.dumps({"inputs": [body]}).encode() + b" " * spaces


async def ask(client: AsyncClient, kind: str, body: bytes, query: str = "") -> Array:
    response = await client.post(f"/infer?model=vector{query}", content=body, headers={"Content-Type": kind})
    assert response.status_code == 200, response.text[:300]
    return np.array(response.json()["outputs"][0]["data"], np.float32)


@pytest.mark.parametrize(
    ("kind", "body", "expected", "calls"),
    [
        ("application/json", tensor(FEW, LARGE_BYTES), FEW.clip(0), 1),
        ("text/csv", b"-1,0.5,2\n" + b"\n" * LARGE_BYTES, FEW.clip(0), 1),
        ("application/x-npz", npz(ZEROS, compressed=True), ZEROS, 1),
        ("application/x-npz", npz(ZEROS), ZEROS, 0),
        ("application/x-npy", npy(ZEROS), ZEROS, 0),
    ],
)
async def test_bodies_that_are_much_work_to_decode(
    client: AsyncClient, apart: list[int], kind: str, body: bytes, expected: Array, calls: int
) -> None:
    headers = {"Content-Type": kind, "Accept": "application/x-npz"}
    response = await client.post("/infer?model=vector", content=body, headers=headers)
    assert response.status_code == 200, response.text[:300]
    np.testing.assert_array_equal(np.load(BytesIO(response.content))["1"], expected)
    assert len(apart) == calls


@pytest.mark.parametrize(("side", "calls"), [(SIDE - 1, 0), (SIDE, 1)])
async def test_large_images(client: AsyncClient, apart: list[int], side: int, calls: int) -> None:
    pixels = np.zeros((side, side), np.uint8)
    pixels[:, side // 10 * 3 : side // 10 * 4] = 255
    body = encoded(Image.fromarray(pixels))
    assert labels(await client.post("/infer?model=digit", content=body))[0] == "p3"
    assert len(apart) == calls


async def test_progressive_images_that_take_as_long_as_larger_ones(
    client: AsyncClient, apart: list[int]
) -> None:
    target = BytesIO()
    Image.new("L", (1500, 1500), 255).save(target, "JPEG", progressive=True)
    assert labels(await client.post("/infer?model=digit", content=target.getvalue()))
    assert len(apart) == 1


async def test_rows_of_v1(client: AsyncClient, apart: list[int]) -> None:
    response = await client.post("/v1/models/vector:predict", json={"instances": MANY.tolist()})
    np.testing.assert_array_equal(np.array(response.json()["predictions"], np.float32), MANY.clip(0))
    assert apart == [1, 1], "body and response"


async def test_large_captures_of_many_rows(client: AsyncClient, apart: list[int]) -> None:
    assert len(await ask(client, "application/x-npy", npy(MANY), "&capture=0")) == len(MANY)
    assert apart == [1]


async def test_the_timeout_of_a_large_document_of_v2_is_read(client: AsyncClient, apart: list[int]) -> None:
    document = json.loads(tensor(FEW)) | {"parameters": {"timeout": 20_000_000}}
    response = await client.post("/v2/models/vector/infer", content=json.dumps(document) + " " * LARGE_BYTES)
    assert response.json()["outputs"][0]["data"] == [0, 0.5, 2]
    assert apart == [], "it is parsed before it is queued"


async def test_json_has_a_bound_of_its_own(client: AsyncClient) -> None:
    body = tensor(FEW, Limits().json_bytes)
    for path in ("/infer?model=vector", "/v1/models/vector:predict", "/v2/models/vector/infer"):
        response = await client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert (response.status_code, "send npy" in response.text) == (413, True), path


async def test_documents_of_v2_that_unpack_to_much(client: AsyncClient, apart: list[int]) -> None:
    body = gzip.compress(tensor(FEW, LARGE_BYTES))
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    response = await client.post("/v2/models/vector/infer", content=body, headers=headers)
    assert response.json()["outputs"][0]["data"] == [0, 0.5, 2]
    assert apart == [1]


async def test_large_responses_of_v2(client: AsyncClient, apart: list[int]) -> None:
    small = {"name": "pnnx_input_0", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    assert (await client.post("/v2/models/vector/infer", json={"inputs": [small]})).status_code == 200
    assert apart == []
    response = await client.post("/v2/models/vector/infer", content=tensor(MANY))
    read = np.array(response.json()["outputs"][0]["data"], np.float32).reshape(-1, 3)
    np.testing.assert_array_equal(read, MANY.clip(0))
    assert apart == [1, 1], "body and response"


@pytest.mark.parametrize(("coding", "calls"), [("identity", 0), ("gzip", 1)])
async def test_large_binary_responses_of_v2_that_are_compressed(
    client: AsyncClient, apart: list[int], coding: str, calls: int
) -> None:
    tensor: dict[str, Any] = {"name": "pnnx_input_0", "shape": MANY.shape, "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": MANY.nbytes}
    text = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text)), "Accept-Encoding": coding}
    response = await client.post("/v2/models/vector/infer", content=text + MANY.tobytes(), headers=headers)
    assert response.headers.get("Content-Encoding", "identity") == coding
    read = np.frombuffer(response.content[-MANY.nbytes :], np.float32).reshape(MANY.shape)
    np.testing.assert_array_equal(read, MANY.clip(0))
    assert len(apart) == calls


@pytest.mark.parametrize(
    ("does", "factor", "status", "code"),
    [
        ("time.sleep(600)", 0.005, 422, "decoding_too_long"),
        ("read_frame(sys.stdin.buffer, 1 << 30)", 3.0, 503, "decoder_failed"),
    ],
    ids=["hangs", "dies"],
)
async def test_a_decoder_that_hangs_or_dies_costs_its_own_request_only(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, does: str, factor: float, status: int, code: str
) -> None:
    large = encoded(Image.new("L", (SIDE, SIDE)))
    async with serving(settings) as client:
        DECODERS.close()
        before = DECODERS.ended[code]
        with monkeypatch.context() as patched:
            patched.setattr(decoder, "COMMAND", (sys.executable, "-c", READY + does))
            patched.setattr(decoder, "_TIMEOUT_FACTOR", factor)  # for this image only: the next has a minute
            task = asyncio.create_task(client.post("/infer?model=digit", content=large))
            assert labels(await client.post("/infer?model=digit", content=bright(4)))[0] == "p4"
            check_error(await task, status, code)
        assert labels(await client.post("/infer?model=digit", content=large))
        metrics = (await client.get("/metrics")).text
    assert f'kuiper_decoders_ended_total{{code="{code}"}} {before + 1.0}' in metrics
    assert "kuiper_decoders 1.0" in metrics
    assert not DECODERS.running, "it ends with the server"
