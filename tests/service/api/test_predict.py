"""The shape of TensorFlow Serving's REST API."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from PIL import Image

from tests.examples.conftest import serving
from tests.service.codec.payloads import encoded
from tests.service.models import VECTOR, add_model, add_models, add_versions

pytestmark = pytest.mark.anyio


async def test_instances_and_inputs(tmp_path: Path) -> None:
    add_models(tmp_path)
    picture = Image.new("L", (10, 1))
    picture.putpixel((6, 0), 255)
    async with serving(tmp_path) as client:

        async def ask(name: str, body: Any) -> Any:
            return (await client.post(f"/v1/models/{name}:predict", json=body)).json()

        assert await ask("vector", {"instances": [[1, -1, 2], [0, 3, -4]]}) == {
            "predictions": [[1, 0, 2], [0, 3, 0]]
        }
        assert await ask("vector", {"inputs": [[1, -1, 2]], "signature_name": "serving_default"}) == {
            "outputs": [[1, 0, 2]]
        }
        named = [{"pnnx_input_0": [1, -1, 2]}]
        assert await ask("vector", {"instances": named}) == {"predictions": [[1, 0, 2]]}
        swapped = [{"left": [1, 2], "right": [3, -5]}, {"right": [1, 1], "left": [0, 2]}]
        refused = (await ask("pair", {"instances": swapped})).get("code")
        assert refused != "invalid_json"  # the order of keys means nothing
        both = {"left": [1, 2], "right": [3, -5]}
        assert await ask("pair", {"inputs": both}) == {"outputs": {"first": [4, -3], "second": [4, 0]}}
        sent = {"b64": b64encode(encoded(picture)).decode()}
        for row in (sent, {"image": sent}, {"pnnx_input_0": sent}, {"0": sent}):
            seen = await ask("digit", {"instances": [row]})
            assert max(range(10), key=seen["predictions"][0].__getitem__) == 6
        for column in (sent, [sent], {"image": sent}, {"image": [sent]}, {"pnnx_input_0": [sent]}):
            seen = await ask("digit", {"inputs": column})
            assert max(range(10), key=seen["outputs"][0].__getitem__) == 6
        two = await ask("digit", {"inputs": {"pnnx_input_0": [sent, sent]}})
        assert two == await ask("digit", {"inputs": [sent, sent]})
        assert two["code"] == "wrong_image_count"  # its graph is not proved to take several
        for body in ({"instances": [{"other": sent}]}, {"inputs": {"other": sent}}):
            assert (await ask("digit", body))["code"] == "unknown_input"


async def test_long_rows_of_an_input_that_is_called_data(tmp_path: Path) -> None:
    wide = VECTOR.replace("(?,3)", "(?,2,3000)").replace("pnnx_input_0 ", "data ")
    add_model(tmp_path, "wide", wide)
    rows: list[Any] = [[[place - 40 + 0.5] * 3000, [1] * 3000] for place in range(80)]
    async with serving(tmp_path) as client:
        asked = {"instances": [{"data": row} for row in rows[:40]]}
        response = await client.post("/v1/models/wide:predict", json=asked)
        expected = [[[max(0.0, value[0])] * 3000, [1.0] * 3000] for value, _ in rows[:40]]
        assert response.json() == {"predictions": expected}
        many = await client.post(
            "/v1/models/wide:predict", json={"instances": [{"data": row} for row in rows]}
        )
        assert (many.status_code, many.json()["code"]) == (413, "too_many_values")


async def test_versions(tmp_path: Path) -> None:
    add_versions(tmp_path, "model", {"1": VECTOR, "2": VECTOR})
    async with serving(tmp_path) as client:
        path = "/v1/models/model/versions/{}:predict"
        assert (await client.post(path.format(1), json={"instances": [[1, 2, 3]]})).status_code == 200
        assert (await client.post(path.format(3), json={"instances": [[1, 2, 3]]})).status_code == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_json"),
        ({"instances": [[1, 2, 3]], "inputs": [[1, 2, 3]]}, "invalid_json"),
        ({"instances": []}, "invalid_json"),
        ({"inputs": []}, "invalid_json"),
        ({"inputs": {"pnnx_input_0": []}}, "invalid_json"),
        ({"instances": 3}, "invalid_json"),
        ({"instances": [{"a": [1]}, {"b": [1]}]}, "invalid_json"),
        ({"instances": [{"a": [1, 2, 3]}]}, "unknown_input"),
        ({"instances": [{"b64": "AAAA"}]}, "not_an_image_model"),
        ({"instances": [[1, 2]], "columns": 1}, "unknown_field"),
        ([1], "invalid_json"),
    ],
)
async def test_bodies_that_are_none(client: AsyncClient, body: Any, code: str) -> None:
    refused = await client.post("/v1/models/vector:predict", json=body)
    assert refused.json()["code"] == code
    assert 400 <= refused.status_code < 500
    unknown = await client.post("/v1/models/nobody:predict", json=body)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "model_not_found")
