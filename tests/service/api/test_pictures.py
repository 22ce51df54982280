"""Pictures of all kinds as requests: the right pixels, or a clear error."""

import base64
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient
from PIL import Image

from service.config.settings import Settings
from tests.service.codec.payloads import encoded
from tests.service.models import add_model

pytestmark = pytest.mark.anyio

ECHO = """
pnnx.Input  pnnx_input_0  0 1 0 #0=(1,3,2,4)f32
nn.ReLU     relu          1 1 0 1 #0=(1,3,2,4)f32 #1=(1,3,2,4)f32
pnnx.Output pnnx_output_0 1 0 1 #1=(1,3,2,4)f32
"""
"""Returns the picture that it gets, of two rows and four columns."""
FLAT = """
pnnx.Input    pnnx_input_0  0 1 0 #0=(?,3,2,4)f32
torch.flatten flat          1 1 0 1 end_dim=-1 start_dim=1 $input=0 #0=(?,3,2,4)f32 #1=(?,24)f32
pnnx.Output   pnnx_output_0 1 0 1 #1=(?,24)f32
"""
"""Returns the numbers of the picture in a row."""
LINES = """
pnnx.Input    pnnx_input_0  0 1 0 #0=(?,1,4,?)f32
torch.squeeze flat          1 1 0 1 dim=1 $input=0 #0=(?,1,4,?)f32 #1=(?,4,?)f32
torch.permute turn          1 1 1 2 dims=(0,2,1) $input=1 #1=(?,4,?)f32 #2=(?,?,4)f32
pnnx.Output   pnnx_output_0 1 0 2 #2=(?,?,4)f32
"""
"""Takes the rows of a picture for how probable a blank and three characters are, column by column."""
LINE_CONFIG = """
[image]
size = [4, 8]
resize = "height"
resample = "nearest"
colour = "gray"
"""
CONFIG = """
[image]
resample = "nearest"
scale = 1.0
"""
RED, BLUE, BLACK, WHITE = (255, 0, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)
ROW = [RED, BLUE, WHITE, BLACK]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("echoes")
    add_model(root, "echo", ECHO, CONFIG)
    add_model(root, "proved", ECHO, CONFIG + "[batching]\nmax_batch_size = 4\n")
    add_model(
        root, "boxed", ECHO, CONFIG + 'resize = "fit"\nscale_up = false\npad = 7\nbackground = [1, 2, 3]\n'
    )
    tasks = 'task = "segmentation"\nlabels = ["r", "g", "b"]\n' + CONFIG
    add_model(root, "segments", ECHO, tasks)
    add_model(root, "vectors", FLAT, 'task = "embedding"\n' + CONFIG + "[batching]\nmax_batch_size = 4\n")
    add_model(root, "lines", LINES, 'task = "ocr"\nlabels = ["a", "b", "c"]\n' + LINE_CONFIG)
    return root


@pytest.fixture(scope="module")
def settings(folder: Path) -> Settings:
    return Settings(models=folder, workers=1)


def stripes(size: tuple[int, int] = (4, 2)) -> Image.Image:
    """Four upright stripes: red, blue, white and black."""
    row = np.repeat(np.array(ROW, np.uint8), size[0] // 4, axis=0)
    return Image.fromarray(np.tile(row, (size[1], 1, 1)))


def turned(orientation: int, turn: Image.Transpose) -> bytes:
    tags = Image.Exif()
    tags[0x0112] = orientation
    return encoded(stripes().transpose(turn), exif=tags)


def sixteen_bits() -> bytes:
    image = Image.fromarray(np.full((2, 4), 0x80FF, np.uint16))
    return encoded(image)


def palette() -> bytes:
    return encoded(stripes().quantize(4))


def animated(form: str) -> bytes:
    return encoded(stripes(), form, save_all=True, append_images=[Image.new("RGB", (4, 2))], lossless=True)


def headless(width: int, height: int) -> bytes:
    """A PNG that claims a size, and has hardly any pixels."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = b"IDAT" + zlib.compress(bytes(5))
    chunks = [
        struct.pack(">I", len(part) - 4) + part + struct.pack(">I", zlib.crc32(part)) for part in (head, body)
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def white_ink() -> bytes:
    pixels = np.zeros((2, 4, 4), np.uint8)
    pixels[:, 1] = 255
    return encoded(Image.fromarray(pixels))


async def ask(
    client: AsyncClient, data: bytes, model: str = "echo", kind: str = "application/octet-stream"
) -> Any:
    return await client.post(f"/infer?model={model}&trace=off", content=data, headers={"Content-Type": kind})


async def pixels(client: AsyncClient, data: bytes, model: str = "echo", kind: str = "image/png") -> list[Any]:
    response = await ask(client, data, model, kind)
    assert response.status_code == 200, response.text
    (output,) = response.json()["outputs"]
    rows = np.array(output["data"]).reshape(3, 2, 4).transpose(1, 2, 0)
    return [tuple(map(int, pixel)) for pixel in rows[0]]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(encoded(stripes()), ROW, id="plain"),
        pytest.param(encoded(stripes((400, 200)), "WEBP", lossless=True), ROW, id="larger"),
        pytest.param(encoded(stripes(), "BMP"), ROW, id="bitmap"),
        pytest.param(palette(), ROW, id="palette"),
        pytest.param(turned(6, Image.Transpose.ROTATE_90), ROW, id="turned"),
        pytest.param(turned(2, Image.Transpose.FLIP_LEFT_RIGHT), ROW, id="mirrored"),
        pytest.param(encoded(Image.new("RGB", (1, 1), RED)), [RED] * 4, id="one pixel"),
        pytest.param(sixteen_bits(), [(128, 128, 128)] * 4, id="16 bits"),
        pytest.param(encoded(Image.new("1", (4, 2), 1)), [WHITE] * 4, id="one bit"),
        pytest.param(white_ink(), [BLACK, WHITE, BLACK, BLACK], id="white ink"),
        pytest.param(encoded(Image.new("RGBA", (4, 2), (9, 9, 9, 0))), [WHITE] * 4, id="nothing"),
    ],
)
async def test_kinds_of_pictures(client: AsyncClient, data: bytes, expected: list[Any]) -> None:
    assert await pixels(client, data) == expected


async def test_four_colour_print(client: AsyncClient) -> None:
    data = encoded(Image.new("CMYK", (64, 64), (0, 255, 255, 0)), "JPEG")
    np.testing.assert_allclose(await pixels(client, data, kind="image/jpeg"), [RED] * 4, atol=3)


async def test_a_picture_of_another_name_is_read_by_its_bytes(client: AsyncClient) -> None:
    assert await pixels(client, encoded(stripes(), "BMP"), kind="image/jpeg") == ROW


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
async def test_an_animation_is_read_by_its_first_frame_and_the_response_says_so(
    client: AsyncClient, form: str
) -> None:
    assert await pixels(client, animated(form)) == ROW
    response = (await ask(client, animated(form))).json()
    assert response["warnings"] == ["the image is animated: its first frame was read"]
    assert "warnings" not in (await ask(client, encoded(stripes()))).json()


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        pytest.param(b"", 400, "empty_body", id="nothing"),
        pytest.param(encoded(stripes((400, 200)))[:-60], 400, "invalid_image", id="cut off"),
        pytest.param(encoded(stripes((400, 200)), "JPEG")[:-200], 400, "invalid_image", id="JPEG cut off"),
        pytest.param(encoded(stripes())[:20], 400, "invalid_image", id="cut in the header"),
        pytest.param(headless(4, 2), 400, "invalid_image", id="wrong pixels"),
        pytest.param(headless(60_000, 60_000), 413, "image_too_large", id="huge header"),
        pytest.param(headless(0, 5), 400, "invalid_image", id="no columns"),
        pytest.param(headless(1, 1 << 20), 413, "image_too_large", id="very narrow"),
    ],
)
@pytest.mark.parametrize("kind", ["image/png", "image/jpeg"])
async def test_pictures_that_cannot_be_read(
    client: AsyncClient, data: bytes, status: int, code: str, kind: str
) -> None:
    response = await ask(client, data, kind=kind)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert await pixels(client, encoded(stripes())) == ROW  # the server goes on


async def test_large_and_small_pictures_in_one_form_are_a_batch_where_that_is_proved(
    client: AsyncClient,
) -> None:
    images = [encoded(stripes()), encoded(stripes((1600, 800)).transpose(Image.Transpose.FLIP_LEFT_RIGHT))]
    body = {"images": [base64.b64encode(image).decode() for image in images]}
    response = (await client.post("/infer?model=proved", json=body)).json()
    (output,) = response["outputs"]
    assert output["shape"] == [2, 3, 2, 4]
    rows = np.array(output["data"])[:, :, 0].transpose(0, 2, 1)
    np.testing.assert_array_equal(rows, [ROW, ROW[::-1]])
    assert [(image["width"], image["height"]) for image in response["images"]] == [(4, 2), (1600, 800)]


async def test_several_pictures_for_a_graph_that_is_not_proved_to_take_them(client: AsyncClient) -> None:
    body = {"images": [base64.b64encode(encoded(stripes())).decode()] * 2}
    response = await client.post("/infer?model=echo", json=body)
    assert (response.status_code, response.json()["code"]) == (422, "wrong_image_count")


async def test_background_bars_and_size(client: AsyncClient) -> None:
    data = encoded(Image.new("RGBA", (2, 1), (0, 0, 0, 0)))
    assert await pixels(client, data, "boxed") == [(7, 7, 7), (1, 2, 3), (1, 2, 3), (7, 7, 7)]
    (image,) = (await ask(client, data, "boxed", "image/png")).json()["images"]
    assert (image["scale"], image["offset"]) == ([1.0, 1.0], [1.0, 0.0])


async def test_segmentation_of_a_picture(client: AsyncClient) -> None:
    picture = Image.fromarray(np.array([[RED, BLUE, (0, 200, 0), BLUE]] * 2, np.uint8))
    for form, size in (("rle", (4, 2)), ("array", (4, 2)), ("array", (40, 20)), ("none", (4, 2))):
        data = encoded(picture.resize(size, Image.Resampling.NEAREST))
        response = (await client.post(f"/infer?model=segments&mask={form}", content=data)).json()
        ((found,),) = response["predictions"]
        assert (found["width"], found["height"]) == size
        regions = {region["label"]: region["area"] for region in found["regions"]}
        assert sum(regions.values()) == size[0] * size[1]
        assert max(regions, key=lambda label: regions[label]) == "b"
        assert (found["mask"] is not None) == (form == "array")
        if form == "array" and size == (4, 2):
            assert found["mask"] == [[0, 2, 1, 2]] * 2
    drawn = await client.post("/infer?model=segments", content=data, headers={"Accept": "image/png"})
    assert drawn.headers["content-type"] == "image/png"
    assert Image.open(BytesIO(drawn.content)).size == (4, 2)
    refused = await client.post("/infer?model=segments&mask=drawing", content=data)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_parameter")


async def test_two_pictures_and_their_cosine(client: AsyncClient) -> None:
    images = [Image.new("RGB", (4, 2), colour) for colour in (RED, (255, 255, 0))]
    body = {"images": [base64.b64encode(encoded(image)).decode() for image in images]}
    response = (await client.post("/infer?model=vectors", json=body)).json()
    (first,), (second,) = response["predictions"]
    np.testing.assert_allclose([first["cosines"], second["cosines"]], [[1, 0.5**0.5], [0.5**0.5, 1]])
    assert len(first["vector"]) == 24


async def test_lines_of_text_of_several_widths(client: AsyncClient) -> None:
    columns = [1, 1, 0, 1, 2, 3, 3, 0] * 5
    levels = np.zeros((4, len(columns)), np.uint8)
    levels[columns, np.arange(len(columns))] = 255
    images = [Image.fromarray(levels), Image.fromarray(levels[:, :8])]
    body = {"images": [base64.b64encode(encoded(image)).decode() for image in images]}
    response = (await client.post("/infer?model=lines", json=body)).json()
    assert [line["text"] for (line,) in response["predictions"]] == ["aabc" * 5, "aabc"]
