"""`POST /infer` in this process: every kind of body and every parameter."""

import base64
import json
import logging
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient

from engine.backend import choose_backend
from service.log_context import FIELDS
from tests.service.api.responses import VECTOR, bright, check_error, labels, values
from tests.service.codec.payloads import npy, npz

pytestmark = pytest.mark.anyio
BACKEND = choose_backend().value


async def test_image_file_in_a_form(client: AsyncClient) -> None:
    files = {"file": ("7.png", bright(7), "image/png")}
    assert labels(await client.post("/infer?model=digit", files=files))[0] == "p7"


@pytest.mark.parametrize("form", ["png", "bmp"])
async def test_raw_image(client: AsyncClient, form: str) -> None:
    headers = {"Content-Type": f"image/{form}"}
    assert (
        labels(await client.post("/infer?model=digit", content=bright(4, form), headers=headers))[0] == "p4"
    )


async def test_base64_image_in_json(client: AsyncClient) -> None:
    body = {"image": base64.b64encode(bright(2)).decode()}
    assert labels(await client.post("/infer?model=digit", json=body))[0] == "p2"


@pytest.mark.parametrize("data", [[[-1, 0.5, 2]], [-1, 0.5, 2]], ids=["nested", "flat"])
async def test_tensors_in_json(client: AsyncClient, data: list[Any]) -> None:
    tensor = {"name": "pnnx_input_0", "shape": [1, 3], "dtype": "f32", "data": data}
    assert values(await client.post("/infer?model=vector", json={"inputs": [tensor]})) == [[0, 0.5, 2]]


async def test_npy_body(client: AsyncClient) -> None:
    body = npy(np.array([[-1, 0.5, 2]], np.float32))
    headers = {"Content-Type": "application/x-npy"}
    assert values(await client.post("/infer?model=vector", content=body, headers=headers)) == [[0, 0.5, 2]]


async def test_npz_body(client: AsyncClient) -> None:
    body = npz(left=np.array([1, -2], np.float32), right=np.array([1, 1], np.float32))
    response = await client.post(
        "/infer?model=pair", content=body, headers={"Content-Type": "application/x-npz"}
    )
    assert (values(response, 0), values(response, 1)) == ([2, -1], [2, 0])


@pytest.mark.parametrize("text", ["-1,0.5,2\n1,1,1\n", "a,b,c\n-1,0.5,2\n1,1,1\n"], ids=["bare", "header"])
async def test_csv_body(client: AsyncClient, text: str) -> None:
    response = await client.post("/infer?model=vector", content=text, headers={"Content-Type": "text/csv"})
    assert values(response) == [[0, 0.5, 2], [1, 1, 1]]


async def test_response_has_everything(client: AsyncClient) -> None:
    response = await client.post("/infer?model=digit", content=bright(7), headers={"X-Request-ID": "r1"})
    body = response.json()
    assert list(body) == [
        "model",
        "version",
        "request_id",
        "predictions",
        "images",
        "outputs",
        "timing",
        "trace",
    ]
    assert (body["model"], body["request_id"], response.headers["x-request-id"]) == ("digit", "r1", "r1")
    assert [len(item) for item in body["predictions"]] == [3]
    assert set(body["timing"]) == {"decode_ms", "queue_ms", "forward_ms", "encode_ms", "total_ms"}
    assert body["timing"]["total_ms"] >= body["timing"]["forward_ms"] >= 0
    layers = body["trace"]["layers"]
    assert [layer["type"] for layer in layers] == ["pnnx.Input", "torch.flatten", "nn.Softmax", "pnnx.Output"]
    assert all("duration_ms" in layer and "name" in layer for layer in layers)


async def test_trace_can_be_off_or_with_statistics(client: AsyncClient) -> None:
    off = (await client.post("/infer?model=vector&trace=off", json=VECTOR)).json()
    assert "trace" not in off
    stats = (await client.post("/infer?model=vector&trace=stats", json=VECTOR)).json()
    assert stats["trace"]["layers"][1]["outputs"][0]["statistics"]["max"] == 2


async def test_operands_can_be_captured(client: AsyncClient) -> None:
    body = npz(left=np.array([1, -2], np.float32), right=np.array([1, 1], np.float32))
    for query in ("capture=s,a", "capture=s&capture=a"):
        response = (await client.post(f"/infer?model=pair&{query}", content=body)).json()
        captured = {operand["name"]: operand["data"] for operand in response["captured"]}
        assert captured == {"s": [2, -1], "a": [1, -2]}


async def test_response_shows_what_computed_its_values(client: AsyncClient) -> None:
    """`vector` is one compiled kernel: inputs and outputs are its own."""
    query = "/infer?model=vector&trace=stats&capture=0,1"
    response = (await client.post(query, json=VECTOR)).json()
    assert [operand["backend"] for operand in response["captured"]] == [BACKEND, BACKEND]
    assert response["captured"][1]["data"] == response["outputs"][0]["data"]
    outputs = [operand for layer in response["trace"]["layers"] for operand in layer["outputs"]]
    assert [operand["backend"] for operand in outputs] == [BACKEND, BACKEND]
    assert response["timing"]["observed"] is True
    assert response["trace"]["observed"] is True


@pytest.mark.parametrize("query", ["", "&trace=off", "&trace=on"])
async def test_times_of_runs_that_serve_have_no_mark(client: AsyncClient, query: str) -> None:
    response = (await client.post(f"/infer?model=vector{query}", json=VECTOR)).json()
    assert "observed" not in response["timing"]
    assert "observed" not in response.get("trace", {})
    unmarked = await client.post("/infer?model=vector&trace=off&capture=0", json=VECTOR)
    assert unmarked.json()["timing"]["observed"] is True


async def test_top_k_counts_predictions(client: AsyncClient) -> None:
    assert labels(await client.post("/infer?model=digit&top_k=1", content=bright(7))) == ["p7"]


async def test_query_wins_over_body(client: AsyncClient) -> None:
    body = VECTOR | {"parameters": {"trace": "stats", "capture": ["0"]}}
    response = (await client.post("/infer?model=vector&trace=off", json=body)).json()
    assert "trace" not in response
    assert [operand["name"] for operand in response["captured"]] == ["0"]


async def test_response_can_be_binary(client: AsyncClient) -> None:
    headers = {"Accept": "application/x-npz"}
    response = await client.post("/infer?model=vector", json=VECTOR, headers=headers)
    assert response.headers["content-type"] == "application/x-npz"
    arrays = np.load(BytesIO(response.content))
    assert arrays["1"].tolist() == [[0, 0.5, 2]]
    assert json.loads(arrays["meta"])["model"] == "vector"


async def test_error_is_json_whatever_the_client_takes(client: AsyncClient) -> None:
    response = await client.post("/infer?model=none", headers={"Accept": "application/x-npz"})
    check_error(response, 404, "model_not_found")


async def test_loaded_model_is_named_in_the_log(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "service.access"):
        await client.post("/infer?model=vector", json=VECTOR)
        await client.post("/infer?model=made-up", json=VECTOR)
    assert [getattr(record, FIELDS)["model"] for record in caplog.records] == ["vector", None]
