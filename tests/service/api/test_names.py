"""Inputs by their names, and captures by the names of operators."""

from base64 import b64encode
from pathlib import Path

import pytest

from tests.examples.conftest import serving
from tests.service.codec.payloads import encoded
from tests.service.models import DIGIT, DIGIT_CONFIG, PAIR, VECTOR, add_model

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_tensors_by_name(tmp_path: Path) -> None:
    add_model(tmp_path, "pair", PAIR)
    async with serving(tmp_path) as client:
        inputs = {"right": [3, -5], "left": {"data": [1, 2], "dtype": "f32"}}
        response = (await client.post("/infer", json={"inputs": inputs})).json()
        assert [one["data"] for one in response["outputs"]] == [[4, -3], [4, 0]]
        for wrong, code in (
            ({"left": [1, 2]}, "missing_input"),
            ({"left": [1, 2], "up": [1, 2]}, "unknown_input"),
            ({"left": [1, 2], "right": "AAAA"}, "invalid_json"),
            ({"left": [1, 2], "a": [1, 2]}, "duplicate_input"),
            ({}, "missing_input"),
        ):
            refused = await client.post("/infer", json={"inputs": wrong})
            assert refused.json()["code"] == code, wrong


async def test_images_by_name(tmp_path: Path) -> None:
    from PIL import Image

    add_model(tmp_path, "digit", DIGIT, DIGIT_CONFIG)
    picture = Image.new("L", (10, 1))
    picture.putpixel((6, 0), 255)
    text = b64encode(encoded(picture)).decode()
    async with serving(tmp_path) as client:
        response = (await client.post("/infer", json={"inputs": {"pnnx_input_0": text}})).json()
        assert response["predictions"][0][0]["label"] == "p6"
        refused = await client.post("/infer", json={"inputs": {"picture": text}})
        assert refused.json()["code"] == "unknown_input"


async def test_captures_by_name_of_an_operator(tmp_path: Path) -> None:
    add_model(tmp_path, "pair", PAIR)
    async with serving(tmp_path) as client:
        body = {"inputs": {"left": [1, 2], "right": [3, -5]}}
        response = (await client.post("/infer?capture=sum,t", json=body)).json()
        assert [(one["name"], one["data"]) for one in response["captured"]] == [("s", [4, -3]), ("t", [4, 0])]
        refused = (await client.post("/infer?capture=summ", json=body)).json()
        assert refused["code"] == "unknown_operand"
        assert "sum" in refused["details"]["nearest"]


async def test_names_do_not_change_lists(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    async with serving(tmp_path) as client:
        response = await client.post("/infer", json={"inputs": [{"data": [[1, -1, 2]]}]})
        assert response.json()["outputs"][0]["data"] == [[1, 0, 2]]
