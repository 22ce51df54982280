from pathlib import Path

import pytest
from pydantic import SecretStr

from service.app import create_app
from service.config.settings import Settings
from tests.examples.conftest import Extend, serving
from tests.service.models import DIGIT, DIGIT_CONFIG, VECTOR, add_model

pytestmark = pytest.mark.anyio


@pytest.fixture
def models(tmp_path: Path) -> Path:
    add_model(tmp_path, "digit", DIGIT, DIGIT_CONFIG)
    add_model(tmp_path, "vector", VECTOR)
    return tmp_path


async def test_endpoint_responses(models: Path, extend: Extend) -> None:
    extend("model_labels")
    async with serving(models) as client:
        response = await client.get("/models/digit/labels")
        assert response.headers["content-type"].startswith("text/plain")
        assert response.text.splitlines() == [f"p{place}" for place in range(10)]
        refused = await client.get("/models/vector/labels")
        assert (refused.status_code, refused.json()["code"]) == (404, "no_labels")
        assert (await client.get("/models/none/labels")).json()["code"] == "model_not_found"
        assert "/models/{name}/labels" in (await client.get("/openapi.json")).json()["paths"]


async def test_endpoint_needs_a_key_where_others_do(models: Path, extend: Extend) -> None:
    extend("model_labels")
    schema = create_app(Settings(models=models, api_keys=SecretStr("k" * 16))).openapi()
    assert "401" in schema["paths"]["/models/{name}/labels"]["get"]["responses"]


async def test_without_the_example_there_is_no_such_path(models: Path) -> None:
    async with serving(models) as client:
        assert (await client.get("/models/digit/labels")).status_code == 404
        assert "/models/{name}/labels" not in (await client.get("/openapi.json")).json()["paths"]
