import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from service.config.settings import Settings
from service.repository.repository import RepositoryError, load_repository
from tests.examples.conftest import Extend, serving
from tests.service.models import VECTOR, add_model

pytestmark = pytest.mark.anyio
CONFIG = """
task = "regression"
[regression]
names = ["width", "height", "depth"]
unit = "mm"
"""


async def test_quantities_are_answered_and_described(tmp_path: Path, extend: Extend) -> None:
    example = extend("regression")
    add_model(tmp_path, "box", VECTOR, CONFIG)
    async with serving(tmp_path) as client:
        response = (await client.post("/infer", json={"inputs": [{"data": [[1, 2.5, "Infinity"]]}]})).json()
        assert response["predictions"] == [
            [
                {"name": "width", "value": 1, "unit": "mm"},
                {"name": "height", "value": 2.5, "unit": "mm"},
                {"name": "depth", "value": "Infinity", "unit": "mm"},
            ]
        ]
        for prediction in response["predictions"][0]:
            TypeAdapter(example.Quantity).validate_python(prediction)
        assert (await client.get("/models/box")).json()["task"] == "regression"
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
        described = schemas["InferenceResponse"]["properties"]["predictions"]["anyOf"][0]["items"]["items"]
        assert {"$ref": "#/components/schemas/Quantity"} in described["anyOf"]
        assert set(schemas["Quantity"]["properties"]) == {"name", "value", "unit"}


@pytest.mark.parametrize(
    ("config", "part"),
    [
        (CONFIG.replace('"depth"', '"depth", "weight"'), "(batch, 4)"),
        (CONFIG + "units = 3\n", "known keys: names, unit"),
        (CONFIG + "[classification]\n", 'expected task = "classification"'),
    ],
)
async def test_configuration_is_checked_when_a_model_is_loaded(
    tmp_path: Path, extend: Extend, config: str, part: str
) -> None:
    extend("regression")
    add_model(tmp_path, "box", VECTOR, config)
    with pytest.raises(RepositoryError, match=re.escape(part)):
        load_repository(Settings(models=tmp_path))


async def test_without_the_example_there_is_no_such_task(tmp_path: Path) -> None:
    add_model(tmp_path, "box", VECTOR, CONFIG)
    with pytest.raises(RepositoryError, match="should be 'classification', "):
        load_repository(Settings(models=tmp_path))
