from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import AsyncClient

from service.config.settings import Settings
from service.services import services_of
from tests.service.conftest import client_of, running, serving
from tests.service.models import DIGIT, PAIR, UNKNOWN_LAYER, VECTOR, add_model, add_versions

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
    shown = (await client.get("/models/digit")).json()
    (warmed_up,) = shown.pop("warmed_up")
    assert warmed_up.pop("seconds") >= 0
    assert warmed_up == {"shapes": [[1, 1, 1, 10]], "compiled": True}
    assert shown.pop("verification")["refused"] == []
    assert shown == {
        "name": "digit",
        "version": "1",
        "versions": [{"version": "1", "state": "ready", "reason": None}],
        "state": "ready",
        "reason": None,
        "task": "classification",
        "description": "Finds the brightest pixel.",
        "inputs": [{"name": "pnnx_input_0", "operand": "0", "shape": [1, 1, 1, 10], "dtype": "f32"}],
        "outputs": [{"name": "pnnx_output_0", "operand": "2", "shape": [1, 10], "dtype": "f32"}],
        "parameter_count": 0,
        "bytes": 0,
        "traffic": None,
        "labels": [f"p{n}" for n in range(10)],
        "accepts": ["image", "tensor"],
        "multiply_adds": 0,
        "precision": "f32",
        "precisions": {"f32": 4},
        "max_batch_size": 1,
        "batching_refused": None,
        "warnings": [],
    }


async def test_dynamic_dimensions_are_null(client: AsyncClient) -> None:
    assert (await client.get("/models/vector")).json()["inputs"][0]["shape"] == [None, 3]


@pytest.mark.parametrize("name", ["none", "a%20b", "..%2f.."])
async def test_unknown_model(client: AsyncClient, name: str) -> None:
    response = await client.get(f"/models/{name}")
    assert response.status_code == 404
    assert response.json()["code"] in ("model_not_found", "not_found")


async def test_broken_model_is_listed_with_its_reason(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    add_model(tmp_path, "unknown", UNKNOWN_LAYER)
    add_model(tmp_path, "cut", DIGIT).joinpath("model.bin").write_bytes(b"no zip")
    async with serving(Settings(models=tmp_path, skip_broken=True, workers=1)) as client:
        models = (await client.get("/models")).json()["models"]
        states = {model["name"]: model["state"] for model in models}
        assert states == {"cut": "broken", "unknown": "broken", "vector": "ready"}
        detail = (await client.get("/models/unknown")).json()
        assert detail["reason"] == models[1]["reason"]
        assert "nn.RELU relu" in detail["reason"]
        response = await client.post("/infer?model=unknown", content=b"{}")
        assert (response.status_code, response.json()["code"]) == (503, "model_broken")


@pytest.fixture(scope="module")
async def versions(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AsyncClient]:
    root = tmp_path_factory.mktemp("versions")
    add_versions(root, "m", {"1": VECTOR, "2": PAIR, "3": UNKNOWN_LAYER})
    add_model(root, "n", VECTOR)
    settings = Settings(models=root, skip_broken=True, workers=1, model_control="explicit")
    async with running(settings) as app, client_of(app) as client:
        services_of(app).repository.unload("n")
        yield client


async def test_versions_are_listed(versions: AsyncClient) -> None:
    listed = (await versions.get("/models")).json()["models"]
    assert [(model["name"], model["version"], model["state"]) for model in listed] == [
        ("m", "2", "ready"),
        ("n", None, "unloaded"),
    ]
    assert [(one["version"], one["state"]) for one in listed[0]["versions"]] == [
        ("1", "ready"),
        ("2", "ready"),
        ("3", "broken"),
    ]
    assert listed[0]["versions"][2]["reason"] in listed[0]["reason"]
    assert listed[1]["versions"] == [{"version": "1", "state": "unloaded", "reason": None}]


@pytest.mark.parametrize(("query", "version", "inputs"), [("", "2", 2), ("?version=1", "1", 1)])
async def test_version_is_shown(versions: AsyncClient, query: str, version: str, inputs: int) -> None:
    model = (await versions.get(f"/models/m{query}")).json()
    assert (model["version"], model["state"], len(model["inputs"])) == (version, "ready", inputs)
    graph = (await versions.get(f"/graph?model=m&{query[1:]}")).json()
    assert (graph["model"], graph["version"]) == ("m", version)
    assert sum(node["type"] == "pnnx.Input" for node in graph["nodes"]) == inputs


async def test_version_that_cannot_be_run_is_shown_with_its_reason(versions: AsyncClient) -> None:
    broken = (await versions.get("/models/m?version=3")).json()
    assert (broken["version"], broken["state"]) == ("3", "broken")
    assert "nn.RELU relu" in broken["reason"]
    unloaded = (await versions.get("/models/n")).json()
    assert (unloaded["version"], unloaded["state"], unloaded["reason"]) == (None, "unloaded", None)


async def test_version_is_run(versions: AsyncClient) -> None:
    body = {"inputs": [{"data": [[-1, 0, 1]]}]}
    response = (await versions.post("/infer?model=m&version=1", json=body)).json()
    assert (response["model"], response["version"]) == ("m", "1")
    assert response["outputs"][0]["data"] == [[0, 0, 1]]
    assert (await versions.post("/infer?model=m", json=body)).status_code == 422


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("model=m&version=4", 404, "version_not_found"),
        ("model=m&version=3", 503, "model_broken"),
        ("model=n", 503, "model_unloaded"),
        ("model=n&version=1", 503, "model_unloaded"),
    ],
)
async def test_version_that_is_not_served(versions: AsyncClient, query: str, status: int, code: str) -> None:
    for response in (
        await versions.get(f"/graph?{query}"),
        await versions.post(f"/infer?{query}", content=b"{}"),
    ):
        assert (response.status_code, response.json()["code"]) == (status, code)


async def test_unknown_version_is_not_shown(versions: AsyncClient) -> None:
    response = await versions.get("/models/m?version=4")
    assert (response.status_code, response.json()["code"]) == (404, "version_not_found")
