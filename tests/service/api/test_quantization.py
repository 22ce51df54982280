"""`GET /models/{name}/quantization`, from what `kuiper quantize` wrote."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from httpx import ASGITransport, AsyncClient

from engine import Activation, Quantization, TensorScale, sidecar_path, write_sidecar
from service.app import create_app
from service.config.settings import Settings
from tests.engine.models import write_model
from tests.service.commands.test_quantize import LINES
from tests.service.commands.test_quantize import main as quantize

pytestmark = pytest.mark.anyio
URL = "/models/net/quantization"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "models" / "net"
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    shapes = {"one.weight": (8, 3, 3, 3), "two.weight": (6, 8, 1, 1), "fc.weight": (5, 96)}
    weights = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    write_model(folder, LINES, weights)
    return folder


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[AsyncClient]:
    app = create_app(Settings(models=folder.parent, workers=1, model_control="explicit"))
    transport = ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=transport, base_url="http://test") as client,
    ):
        yield client


def examples(folder: Path) -> Path:
    path = folder.parent.parent / "examples.npz"
    np.savez(path, in_0=np.random.default_rng(1).standard_normal((12, 3, 8, 8)).astype(np.float32))
    return path


async def test_a_model_that_was_not_quantized_has_none(client: AsyncClient) -> None:
    response = await client.get(URL)
    assert (response.status_code, response.json()["code"]) == (404, "quantization_not_found")
    response = await client.get("/models/none/quantization")
    assert (response.status_code, response.json()["code"]) == (404, "model_not_found")


async def test_figures_of_each_layer_are_those_of_the_file(client: AsyncClient, folder: Path) -> None:
    """The file is noticed at once; what is computed changes when the model is loaded again."""
    assert quantize([str(folder / "model.param"), "--data", str(examples(folder)), "--keep", "two"]) == 0
    shown = (await client.get(URL)).json()
    written = json.loads(sidecar_path(folder / "model.param").read_text())
    assert shown["calibration"] == {"data": "examples.npz", "examples": 12, "method": "mse"}
    assert [(layer["name"], layer["type"], layer["input"]) for layer in shown["layers"]] == [
        ("one", "nn.Conv2d", "static"),
        ("fc", "nn.Linear", "static"),
    ]
    for layer in shown["layers"]:
        reported = written["figures"]["layers"][layer["name"]]
        assert layer["figures"]["ratio_db"] == reported["ratio"] > 20
        assert layer["figures"]["int8_ms"] == reported["int8_us"] / 1000 > 0
        assert layer["figures"]["alone"]["agreement"] == reported["alone"]["agreement"]
        assert layer["serves"] == "f32"
    assert shown["precision"] == "f32"
    runs = written["figures"]["runs"]
    assert shown["runs"]["processor"] == runs["processor"]
    assert shown["runs"]["int8_ms"] == runs["int8_us"] / 1000 > 0
    assert shown["outputs"]["ratio_db"] == written["figures"]["outputs"]["ratio"]


async def test_each_place_shows_the_precision_of_each_layer(client: AsyncClient, folder: Path) -> None:
    assert quantize([str(folder / "model.param"), "--data", str(examples(folder)), "--keep", "two"]) == 0
    (folder / "model.toml").write_text('precision = "int8"\n')
    assert (await client.post("/v2/repository/models/net/load")).status_code == 200
    body = {"inputs": {"in": np.zeros((1, 3, 8, 8)).tolist()}}
    trace = (await client.post("/infer?model=net", json=body)).json()["trace"]["layers"]
    graph = (await client.get("/graph?model=net")).json()["nodes"]
    for layers in (trace, graph):
        reported = {layer["name"]: layer["precision"] for layer in layers}
        assert {name: reported[name] for name in ("one", "two", "fc", "pool")} == {
            "one": "int8", "two": "f32", "fc": "int8", "pool": "f32",
        }  # fmt: skip
    counts = {name: list(reported.values()).count(name) for name in ("f32", "int8")}
    shown = (await client.get("/models/net")).json()
    assert (shown["precision"], shown["precisions"]) == ("int8", counts)
    metrics = (await client.get("/metrics")).text
    for name, count in counts.items():
        assert f'kuiper_model_layers{{model="net",precision="{name}",version="1"}} {count}' in metrics


async def test_examples_may_be_in_a_file_whose_name_is_no_utf_8(client: AsyncClient, folder: Path) -> None:
    data = examples(folder).rename(folder.parent.parent / os.fsdecode(b"\xff.npz"))
    assert quantize([str(folder / "model.param"), "--data", str(data)]) == 0
    assert (await client.get(URL)).json()["calibration"]["data"] == "\ufffd.npz"


async def test_a_new_file_serves_when_the_model_is_loaded_again(client: AsyncClient, folder: Path) -> None:
    param, binary = folder / "model.param", folder / "model.bin"
    scales = {"x": TensorScale(0.03, 128), "e": TensorScale(0.1, 128)}
    (folder / "model.toml").write_text('precision = "int8"\n')
    counts = []
    for layers in (["one"], ["one", "fc"]):
        write_sidecar(Quantization(dict.fromkeys(layers, Activation.STATIC), scales), param, binary)
        await client.post("/v2/repository/models/net/load", json={})
        shown = (await client.get(URL)).json()
        assert [(layer["name"], layer["serves"]) for layer in shown["layers"]] == [
            (name, "int8") for name in layers
        ]
        assert {layer["figures"] for layer in shown["layers"]} == {None}
        counts.append((await client.get("/models/net")).json()["precisions"]["int8"])
    assert counts == [2, 3], "with the activation that one kernel does"


async def test_a_file_that_is_another_models_is_refused(client: AsyncClient, folder: Path) -> None:
    param, binary = folder / "model.param", folder / "model.bin"
    path = write_sidecar(Quantization(), param, binary)
    assert (await client.get(URL)).status_code == 200
    document = json.loads(path.read_text())
    document["model"]["bin"] = "sha256:0"
    path.write_text(json.dumps(document))
    response = await client.get(URL)
    assert (response.status_code, response.json()["code"]) == (409, "quantization_refused")
    assert "was made for another .bin file" in response.json()["error"]
    assert str(folder) not in response.json()["error"]
    path.write_text("{")
    assert (await client.get(URL)).status_code == 409
