from pathlib import Path

import numpy as np
import pytest

from tests.examples.conftest import Extend, serving
from tests.service.models import PAIR, VECTOR, add_model

pytestmark = pytest.mark.anyio
KIND = {"Content-Type": "application/octet-stream"}
ELEMENTS = np.array([[-1, 2, 3], [4, -5, 6]], "<f4")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    add_model(tmp_path, "vector", VECTOR)
    add_model(tmp_path, "pair", PAIR)
    return tmp_path


async def test_elements_come_and_go(models: Path, extend: Extend) -> None:
    extend("octet_stream")
    async with serving(models) as client:
        accept = {**KIND, "Accept": "application/octet-stream"}
        response = await client.post("/infer?model=vector", content=ELEMENTS.tobytes(), headers=accept)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/octet-stream"
        np.testing.assert_array_equal(np.frombuffer(response.content, "<f4").reshape(2, 3), ELEMENTS.clip(0))
        plain = await client.post("/infer?model=vector", content=ELEMENTS.tobytes(), headers=KIND)
        assert plain.json()["outputs"][0]["data"] == [[0, 2, 3], [4, 0, 6]]


async def test_format_is_described(models: Path, extend: Extend) -> None:
    extend("octet_stream")
    async with serving(models) as client:
        operation = (await client.get("/openapi.json")).json()["paths"]["/infer"]["post"]
        assert operation["requestBody"]["content"]["application/octet-stream"]["schema"]["format"] == "binary"
        assert "application/octet-stream" in operation["responses"]["200"]["content"]
        refused = await client.post("/infer?model=vector", headers={"Accept": "text/html"})
        assert "application/octet-stream" in refused.json()["details"]["offered"]


@pytest.mark.parametrize(
    ("model", "size", "code"),
    [("vector", 13, "wrong_shape"), ("vector", 4, "wrong_shape"), ("pair", 8, "missing_input")],
)
async def test_bytes_that_are_no_input(
    models: Path, extend: Extend, model: str, size: int, code: str
) -> None:
    extend("octet_stream")
    async with serving(models) as client:
        response = await client.post(f"/infer?model={model}", content=bytes(size), headers=KIND)
        assert (response.status_code, response.json()["code"]) == (422, code)


async def test_without_the_example_there_is_no_such_format(models: Path) -> None:
    async with serving(models) as client:
        response = await client.post("/infer?model=vector", content=bytes(12), headers=KIND)
        assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
