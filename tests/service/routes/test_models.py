from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.settings import Settings
from tests.service.models import DIGIT, UNKNOWN_LAYER, VECTOR, add_model

pytestmark = pytest.mark.anyio


async def test_models_are_listed(client: AsyncClient) -> None:
    models = (await client.get("/models")).json()["models"]
    assert [(model["name"], model["state"]) for model in models] == [
        ("digit", "ready"),
        ("pair", "ready"),
        ("vector", "ready"),
    ]
    assert "labels" not in models[0]


async def test_model_is_shown(client: AsyncClient) -> None:
    assert (await client.get("/models/digit")).json() == {
        "name": "digit",
        "state": "ready",
        "reason": None,
        "task": "classification",
        "description": "Finds the brightest pixel.",
        "inputs": [{"name": "pnnx_input_0", "operand": "0", "shape": [1, 1, 1, 10], "dtype": "f32"}],
        "outputs": [{"name": "pnnx_output_0", "operand": "2", "shape": [1, 10], "dtype": "f32"}],
        "parameter_count": 0,
        "bytes": 0,
        "labels": [f"p{n}" for n in range(10)],
        "multiply_adds": 0,
    }


async def test_open_dimensions_are_null(client: AsyncClient) -> None:
    assert (await client.get("/models/vector")).json()["inputs"][0]["shape"] == [None, 3]


@pytest.mark.parametrize("name", ["none", "a%20b", "..%2f.."])
async def test_unknown_model(client: AsyncClient, name: str) -> None:
    answer = await client.get(f"/models/{name}")
    assert answer.status_code == 404
    assert answer.json()["code"] in ("model_not_found", "not_found")


async def test_broken_model_is_listed_with_its_reason(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    add_model(tmp_path, "cut", DIGIT).joinpath("model.bin").write_bytes(b"no zip")
    app = create_app(Settings(models=tmp_path, skip_broken=True, workers=1))
    transport = ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://test") as client,
    ):
        models = (await client.get("/models")).json()["models"]
        states = {model["name"]: model["state"] for model in models}
        assert states == {"cut": "broken", "unknown": "broken", "vector": "ready"}
        detail = (await client.get("/models/unknown")).json()
        assert detail["reason"] == models[1]["reason"]
        assert "nn.RELU relu" in detail["reason"]
        answer = await client.post("/infer?model=unknown", content=b"{}")
        assert (answer.status_code, answer.json()["code"]) == (503, "model_broken")
