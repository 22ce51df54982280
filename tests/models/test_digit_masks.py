"""The network for masks that ships marks the strokes of its samples, over HTTP."""

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from httpx import ASGITransport, AsyncClient
from PIL import Image

from engine import Array
from service.app import create_app
from service.config.settings import Settings

FOLDER = Path(__file__).parents[2] / "models" / "digit-masks"
SAMPLES = sorted((FOLDER / "samples").glob("*.png"))
LEAST_IOU = 0.85
LEAST_IOU_OF_SAMPLES = 0.75
"""Less than of all scenes: the three samples are harder than the average."""


async def strokes(client: AsyncClient, sample: Path) -> Array:
    """The mask that the server answers."""
    url = "/infer?model=digit-masks&trace=off&mask=png"
    response = await client.post(url, content=sample.read_bytes(), headers={"Content-Type": "image/png"})
    assert response.status_code == 200, response.text
    found = response.json()["predictions"][0][0]
    assert [region["label"] for region in found["regions"]] == ["stroke"]
    with Image.open(io.BytesIO(base64.b64decode(found["mask"]))) as palette:
        mask: Array = np.asarray(palette) == 0
    assert int(mask.sum()) == found["regions"][0]["area"]
    return mask


@pytest.mark.anyio
async def test_strokes_of_samples_are_marked() -> None:
    app = create_app(Settings(models=FOLDER, backend="numpy"))
    shared = union = 0
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        for sample in SAMPLES:
            found = await strokes(client, sample)
            with Image.open(FOLDER / "truth" / sample.name) as truth:
                wanted = np.asarray(truth)
            shared += int((found & wanted).sum())
            union += int((found | wanted).sum())
    assert shared / union >= LEAST_IOU_OF_SAMPLES


def test_card_keeps_to_the_measurements() -> None:
    measured = json.loads((FOLDER / "metrics.json").read_text())["held_out"]
    assert measured["scenes"] == 200
    assert measured["iou"] >= LEAST_IOU
    assert f"**{measured['iou']:.3f}**" in (FOLDER / "MODEL_CARD.md").read_text()
    assert sum(path.stat().st_size for path in FOLDER.glob("digit_masks.pnnx.*")) < 3_000_000
