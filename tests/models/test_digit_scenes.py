"""The detector that ships finds and reads the digits of its samples, over HTTP."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import ASGITransport, AsyncClient
from PIL import Image

from engine import RuntimeGraph, TraceLevel
from service.app import create_app
from service.config.settings import Settings
from tests.models.test_average_precision import MODULE

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[2] / "models" / "digit-scenes"
SAMPLES = sorted((FOLDER / "samples").glob("*.png"))
LEAST_MAP50 = 0.9


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[AsyncClient]:
    app = create_app(Settings(models=FOLDER, backend="numpy"))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as created,
    ):
        yield created


def truth_of(sample: Path) -> Any:
    digits = json.loads((FOLDER / "truth" / f"{sample.stem}.json").read_text())["digits"]
    boxes = np.array([digit["box"] for digit in digits])
    return MODULE.Detections(boxes, np.array([int(digit["label"]) for digit in digits]), np.ones(len(digits)))


async def find(client: AsyncClient, picture: bytes) -> Any:
    """What the server finds in a picture."""
    url = "/infer?model=digit-scenes&trace=off"
    response = await client.post(url, content=picture, headers={"Content-Type": "image/png"})
    assert response.status_code == 200, response.text
    found = response.json()["predictions"][0]
    return MODULE.Detections(
        np.array([one["box"] for one in found], np.float64).reshape(-1, 4),
        np.array([int(one["label"]) for one in found]),
        np.array([one["probability"] for one in found]),
    )


async def test_digits_of_samples_are_found_and_read(client: AsyncClient) -> None:
    found, truth = [], []
    for sample in SAMPLES:
        found.append(await find(client, sample.read_bytes()))
        truth.append(truth_of(sample))
    mean, _ = MODULE.mean_average_precision(found, truth)
    assert mean >= 0.9
    assert sum(len(one.boxes) for one in found) <= 1.6 * sum(len(one.boxes) for one in truth)


async def test_the_picture_is_answered_with_boxes_drawn(client: AsyncClient) -> None:
    sample = FOLDER / "samples" / "0.png"
    headers = {"Content-Type": "image/png", "Accept": "image/png"}
    response = await client.post("/infer?model=digit-scenes", content=sample.read_bytes(), headers=headers)
    assert response.status_code == 200, response.text
    with Image.open(sample) as picture, Image.open(io.BytesIO(response.content)) as drawn:
        assert drawn.size == picture.size
        assert drawn.convert("RGB").tobytes() != picture.convert("RGB").tobytes()


async def test_boxes_lie_in_a_large_picture_where_they_lie_in_a_small_one(client: AsyncClient) -> None:
    sample = FOLDER / "samples" / "0.png"
    with Image.open(sample) as picture:
        larger = picture.convert("RGB").resize((4000, 3000), Image.Resampling.BICUBIC)
    buffer = io.BytesIO()
    larger.save(buffer, "PNG", compress_level=1)
    found, truth = await find(client, buffer.getvalue()), truth_of(sample)
    boxes = truth.boxes * (4000 / 320)
    overlaps = MODULE.iou(boxes, found.boxes)
    hits = overlaps.max(1) >= 0.5
    assert hits.mean() >= 0.8
    nearest = found.boxes[overlaps.argmax(1)][hits]
    assert np.median(np.abs(nearest - boxes[hits])) < 0.015 * 4000


@pytest.mark.parametrize("batch", [1, 3])
def test_all_of_it_runs_in_kernels_the_decoding_of_boxes_too(batch: int) -> None:
    x = np.random.default_rng(batch).random((batch, 3, 416, 416), np.float32)
    native, plain = (
        RuntimeGraph(FOLDER / "digit_scenes.pnnx.param", backend=one) for one in ("native", "numpy")
    )
    native.build()
    plain.build()
    result = native.run([x], trace=TraceLevel.ON)
    assert result.trace is not None
    assert {layer.backend for layer in result.trace.layers if not layer.type.startswith("pnnx.")} == {
        "native"
    }
    np.testing.assert_allclose(result.outputs[0], plain.forward([x])[0], rtol=1e-4, atol=1e-3)


def test_card_keeps_to_the_measurements() -> None:
    measured = json.loads((FOLDER / "metrics.json").read_text())["held_out"]
    assert measured["scenes"] == 200
    assert measured["map50"] >= LEAST_MAP50
    assert f"**{measured['map50']:.3f}**" in (FOLDER / "MODEL_CARD.md").read_text()
    assert sum(path.stat().st_size for path in FOLDER.glob("digit_scenes.pnnx.*")) < 3_000_000
