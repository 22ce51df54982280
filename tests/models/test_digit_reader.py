"""The pipeline that ships: the detector's boxes, read by the classifier."""

import asyncio
import io
from collections.abc import AsyncIterator
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from PIL import Image

from service.app import create_app
from service.config.settings import Settings

pytestmark = pytest.mark.anyio

MODELS = Path(__file__).parents[2] / "models"
SAMPLE = MODELS / "digit-scenes" / "samples" / "0.png"
PNG = {"Content-Type": "image/png"}
MARGIN = 0.1


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client() -> AsyncIterator[AsyncClient]:
    app = create_app(
        Settings(
            models=MODELS,
            backend="numpy",
            workers=1,
            warm_up=False,
            model_control="explicit",
            timeout=300,  # numpy is slow on a busy machine
        )
    )
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as created,
    ):
        yield created


async def ask(client: AsyncClient, model: str, picture: bytes) -> Any:
    response = await client.post(f"/infer?model={model}", content=picture, headers=PNG)
    assert response.status_code == 200, response.text
    return response.json()


def crop(picture: Image.Image, box: list[float]) -> bytes:
    left, top, right, bottom = box
    across, down = MARGIN * (right - left), MARGIN * (bottom - top)
    corners = (
        max(0, floor(left - across)),
        max(0, floor(top - down)),
        min(picture.width, ceil(right + across)),
        min(picture.height, ceil(bottom + down)),
    )
    target = io.BytesIO()
    picture.crop(corners).save(target, "PNG")
    return target.getvalue()


async def test_boxes_are_read_as_crops_sent_one_by_one(client: AsyncClient) -> None:
    response = await ask(client, "digit-reader", SAMPLE.read_bytes())
    found = (await ask(client, "digit-scenes", SAMPLE.read_bytes()))["predictions"][0]
    assert [one["box"] for one in response["predictions"][0]] == [one["box"] for one in found]
    with Image.open(SAMPLE) as opened:
        picture = opened.convert("RGB")
    for one, box in zip(response["predictions"][0], found, strict=True):
        scores = (await ask(client, "digits&top_k=10", crop(picture, one["box"])))["predictions"][0]
        weights = [
            box["probability"] if each["label"] == box["label"] else 1 - box["probability"] for each in scores
        ]
        joint = [each["probability"] * weight for each, weight in zip(scores, weights, strict=True)]
        assert one["label"] == scores[joint.index(max(joint))]["label"]
        assert one["probability"] == pytest.approx(max(joint) / sum(joint), abs=1e-5)
    names = [layer["name"] for layer in response["trace"]["layers"]]
    assert {name.partition("/")[0] for name in names} == {"find", "read"}


async def test_twenty_requests_at_once_need_one_worker(client: AsyncClient) -> None:
    responses = await asyncio.gather(*(ask(client, "digit-reader", SAMPLE.read_bytes()) for _ in range(20)))
    assert all(response["predictions"] == responses[0]["predictions"] for response in responses)


async def test_pipeline_needs_its_steps(client: AsyncClient) -> None:
    await client.post("/v2/repository/models/digits/unload")
    refused = await client.post("/infer?model=digit-reader", content=SAMPLE.read_bytes(), headers=PNG)
    assert refused.status_code == 503
    assert "'read'" in refused.json()["error"]
    await client.post("/v2/repository/models/digits/load")
    assert (await ask(client, "digit-reader", SAMPLE.read_bytes()))["predictions"][0]


async def test_arrays_are_refused_where_crops_are_needed(client: AsyncClient) -> None:
    body = {"inputs": [{"data": [[[[0.0] * 416] * 416] * 3]}]}
    refused = await client.post("/infer?model=digit-reader", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "no_picture")
