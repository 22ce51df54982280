"""`POST /infer` in this process: every kind of body, every parameter, every way to fail."""

import asyncio
import base64
import json
import logging
import threading
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from PIL import Image

from engine import Array, LayerError, RunResult, RuntimeGraph
from engine.backend import choose_backend
from engine.run import StopCheck
from service.infer import inference
from service.log_context import FIELDS
from service.routes import inference as route
from service.scheduling import dispatcher
from service.scheduling.policy import Policy
from service.services import services_of
from tests.service.codec.payloads import encoded, npy, npz

pytestmark = pytest.mark.anyio
SOON = 20.0
BACKEND = choose_backend().value
VECTOR = {"inputs": [{"name": "0", "data": [[-1.0, 0.5, 2.0]]}]}


def bright(place: int, form: str = "PNG") -> bytes:
    """Return a picture of ten pixels in a row, one of them white."""
    picture = Image.new("L", (10, 1))
    picture.putpixel((place, 0), 255)
    return encoded(picture, form)


def labels(answer: Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [prediction["label"] for prediction in answer.json()["predictions"][0]]


def values(answer: Response, index: int = 0) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["outputs"][index]["data"]


def check_error(answer: Response, status: int, code: str) -> dict[str, Any]:
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code), body
    assert list(body) == ["error", "code", "details"]
    details: dict[str, Any] = body["details"]
    return details


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
    answer = await client.post(
        "/infer?model=pair", content=body, headers={"Content-Type": "application/x-npz"}
    )
    assert (values(answer, 0), values(answer, 1)) == ([2, -1], [2, 0])


@pytest.mark.parametrize("text", ["-1,0.5,2\n1,1,1\n", "a,b,c\n-1,0.5,2\n1,1,1\n"], ids=["bare", "header"])
async def test_csv_body(client: AsyncClient, text: str) -> None:
    answer = await client.post("/infer?model=vector", content=text, headers={"Content-Type": "text/csv"})
    assert values(answer) == [[0, 0.5, 2], [1, 1, 1]]


async def test_answer_has_everything(client: AsyncClient) -> None:
    answer = await client.post("/infer?model=digit", content=bright(7), headers={"X-Request-ID": "r1"})
    body = answer.json()
    assert list(body) == ["model", "version", "request_id", "predictions", "outputs", "timing", "trace"]
    assert (body["model"], body["request_id"], answer.headers["x-request-id"]) == ("digit", "r1", "r1")
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
        answer = (await client.post(f"/infer?model=pair&{query}", content=body)).json()
        captured = {operand["name"]: operand["data"] for operand in answer["captured"]}
        assert captured == {"s": [2, -1], "a": [1, -2]}


async def test_answer_tells_what_computed_its_values(client: AsyncClient) -> None:
    """`vector` is one compiled kernel: inputs and outputs are its own."""
    query = "/infer?model=vector&trace=stats&capture=0,1"
    answer = (await client.post(query, json=VECTOR)).json()
    assert [operand["backend"] for operand in answer["captured"]] == [BACKEND, BACKEND]
    assert answer["captured"][1]["data"] == answer["outputs"][0]["data"]
    outputs = [operand for layer in answer["trace"]["layers"] for operand in layer["outputs"]]
    assert [operand["backend"] for operand in outputs] == [BACKEND, BACKEND]
    assert answer["timing"]["observed"] is True
    assert answer["trace"]["observed"] is True


@pytest.mark.parametrize("query", ["", "&trace=off", "&trace=on"])
async def test_times_of_runs_that_serve_have_no_mark(client: AsyncClient, query: str) -> None:
    answer = (await client.post(f"/infer?model=vector{query}", json=VECTOR)).json()
    assert "observed" not in answer["timing"]
    assert "observed" not in answer.get("trace", {})
    unmarked = await client.post("/infer?model=vector&trace=off&capture=0", json=VECTOR)
    assert unmarked.json()["timing"]["observed"] is True


async def test_top_k_counts_predictions(client: AsyncClient) -> None:
    assert labels(await client.post("/infer?model=digit&top_k=1", content=bright(7))) == ["p7"]


async def test_query_wins_over_body(client: AsyncClient) -> None:
    body = VECTOR | {"parameters": {"trace": "stats", "capture": ["0"]}}
    answer = (await client.post("/infer?model=vector&trace=off", json=body)).json()
    assert "trace" not in answer
    assert [operand["name"] for operand in answer["captured"]] == ["0"]


async def test_answer_can_be_binary(client: AsyncClient) -> None:
    headers = {"Accept": "application/x-npz"}
    answer = await client.post("/infer?model=vector", json=VECTOR, headers=headers)
    assert answer.headers["content-type"] == "application/x-npz"
    arrays = np.load(BytesIO(answer.content))
    assert arrays["1"].tolist() == [[0, 0.5, 2]]
    assert json.loads(arrays["meta"])["model"] == "vector"


async def test_error_is_json_whatever_the_client_takes(client: AsyncClient) -> None:
    answer = await client.post("/infer?model=none", headers={"Accept": "application/x-npz"})
    check_error(answer, 404, "model_not_found")


async def test_loaded_model_is_named_in_the_log(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "service.http.access"):
        await client.post("/infer?model=vector", json=VECTOR)
        await client.post("/infer?model=made-up", json=VECTOR)
    assert [getattr(record, FIELDS)["model"] for record in caplog.records] == ["vector", None]


async def test_unknown_model(client: AsyncClient) -> None:
    details = check_error(await client.post("/infer?model=vectro", json=VECTOR), 404, "model_not_found")
    assert details["models"] == ["digit", "pair", "vector"]
    assert details["nearest"] == ["vector"]


async def test_model_is_required_among_several(client: AsyncClient) -> None:
    check_error(await client.post("/infer", json=VECTOR), 422, "model_required")


@pytest.mark.parametrize("query", ["trace=maybe", "top_k=0", "top_k=x", "tarce=off"])
async def test_invalid_parameter(client: AsyncClient, query: str) -> None:
    answer = await client.post(f"/infer?model=vector&{query}", json=VECTOR)
    details = check_error(answer, 422, "invalid_parameter")
    assert details["parameter"] == query.split("=", maxsplit=1)[0]


async def test_unknown_operand_to_capture(client: AsyncClient) -> None:
    answer = await client.post("/infer?model=pair&capture=ss", content=npz(left=np.ones(2), right=np.ones(2)))
    assert check_error(answer, 422, "unknown_operand") == {"operand": "ss", "nearest": ["s"]}


async def test_answer_of_no_acceptable_kind(client: AsyncClient) -> None:
    answer = await client.post("/infer?model=vector", json=VECTOR, headers={"Accept": "text/html"})
    check_error(answer, 406, "not_acceptable")


async def test_body_of_no_known_kind(client: AsyncClient) -> None:
    headers = {"Content-Type": "application/pdf"}
    answer = await client.post("/infer?model=vector", content=b"%PDF", headers=headers)
    check_error(answer, 415, "unsupported_media_type")


async def test_empty_body(client: AsyncClient) -> None:
    check_error(await client.post("/infer?model=vector"), 400, "empty_body")


async def test_body_that_is_too_large(client: AsyncClient) -> None:
    answer = await client.post("/infer?model=vector", content=b"x" * 10_001)
    check_error(answer, 413, "body_too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"\x89PNG\r\n\x1a\n", "image/png", 400, "invalid_image"),
        (b"\x93NUMPY", "application/x-npy", 400, "invalid_npy"),
        (b"PK", "application/x-npz", 400, "invalid_npz"),
        (b"1,2\n3\n", "text/csv", 400, "invalid_csv"),
        (b"--x", "multipart/form-data; boundary=x", 400, "invalid_multipart"),
        (b'{"image": "?"}', "application/json", 400, "invalid_base64"),
    ],
)
async def test_body_that_is_not_what_it_claims(
    client: AsyncClient, content: bytes, content_type: str, status: int, code: str
) -> None:
    model = "vector" if code in ("invalid_csv", "invalid_npy", "invalid_npz") else "digit"
    headers = {"Content-Type": content_type}
    check_error(await client.post(f"/infer?model={model}", content=content, headers=headers), status, code)


async def test_model_that_takes_no_images(client: AsyncClient) -> None:
    check_error(await client.post("/infer?model=vector", content=bright(1)), 422, "not_an_image_model")


async def test_tensor_that_does_not_fit_the_model(client: AsyncClient) -> None:
    body = {"inputs": [{"name": "0", "data": [[[1.0, 2.0, 3.0]]]}]}
    check_error(await client.post("/infer?model=vector", json=body), 422, "wrong_rank")


async def test_layer_that_fails_on_the_request(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **options: object) -> RunResult:
        raise LayerError("nn.Linear fc, operand 3: shape (1, 2); expected (n, 3)")

    monkeypatch.setattr(RuntimeGraph, "run", fail)
    check_error(await client.post("/infer?model=vector", json=VECTOR), 422, "layer_failed")


async def test_fault_in_a_worker_is_answered_and_logged_under_the_request(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError("secret")

    with monkeypatch.context() as patch:
        patch.setattr(inference, "encode", fail)
        answer = await client.post("/infer?model=vector", json=VECTOR, headers={"X-Request-ID": "r5"})
    assert check_error(answer, 500, "internal_error") == {"request_id": "r5"}
    assert "secret" not in answer.text
    assert [record for record in caplog.records if record.exc_info]
    assert values(await client.post("/infer?model=vector", json=VECTOR)) == [[0, 0.5, 2]]


class Gate:
    """Stands in for the run of a model: says when it has begun, goes on when it is let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = threading.Semaphore(0)
        self.open = threading.Event()
        self.reasons: list[str | None] = []
        monkeypatch.setattr(RuntimeGraph, "run", self)

    def __call__(self, inputs: dict[str, Array], *, stop: StopCheck, **options: object) -> RunResult:
        self.begun.release()
        assert self.open.wait(SOON)
        self.reasons.append(stop())
        return RunResult(list(inputs.values()))

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.acquire, timeout=SOON)


def number(value: int) -> dict[str, Any]:
    return {"inputs": [{"data": [[value, value, value]]}]}


async def waiting_in_queue(app: FastAPI, count: int) -> None:
    async with asyncio.timeout(SOON):
        while services_of(app).dispatcher.waiting() != count:
            await asyncio.sleep(0)


async def test_request_too_many_is_refused_while_health_answers(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    first = asyncio.create_task(client.post("/infer?model=vector", json=number(1)))
    await gate.has_begun()
    second = asyncio.create_task(client.post("/infer?model=vector", json=number(2)))
    await waiting_in_queue(app, 1)
    answer = await client.post("/infer?model=vector", json=number(3))
    details = check_error(answer, 503, "queue_full")
    assert (details["waiting"], details["running"]) == (1, 1)
    assert int(answer.headers["retry-after"]) >= 1
    assert (await client.get("/livez")).status_code == 200
    assert (await client.get("/readyz")).status_code == 200
    gate.open.set()
    assert [values(await task) for task in (first, second)] == [[[1, 1, 1]], [[2, 2, 2]]]


async def test_request_too_many_is_refused_before_its_body_is_read(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_body(*_: object) -> bytes:
        raise AssertionError("the body was read")

    gate = Gate(monkeypatch)
    tasks = [asyncio.create_task(client.post("/infer?model=vector", json=number(1))) for _ in range(2)]
    await gate.has_begun()
    await waiting_in_queue(app, 1)
    with monkeypatch.context() as patch:
        patch.setattr(route, "read_body", read_body)
        check_error(await client.post("/infer?model=vector", json=number(1)), 503, "queue_full")
    gate.open.set()
    await asyncio.gather(*tasks)


async def test_request_that_takes_too_long_is_given_up(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    services = services_of(app)
    monkeypatch.setattr(dispatcher, "policy_of", lambda config, settings, batching: Policy(timeout=0.05))
    answer = await client.post("/infer?model=vector", json=number(1))
    assert check_error(answer, 504, "timeout") == {"timeout": 0.05}
    assert services.dispatcher.running() == 1
    gate.open.set()
    async with asyncio.timeout(SOON):
        while services.dispatcher.running():
            await asyncio.sleep(0)
    assert gate.reasons == ["its time is up"]


async def test_requests_at_once_are_answered_as_one_by_one(settings: Any, client: AsyncClient) -> None:
    async def ask(value: int) -> Any:
        body = npy(np.array([[value, -value, 0.5]], np.float32))
        while (answer := await client.post("/infer?model=vector&trace=off", content=body)).status_code == 503:
            await asyncio.sleep(0)
        return values(answer)

    answers = await asyncio.gather(*(ask(value) for value in range(100)))
    assert answers == [[[value, 0, 0.5]] for value in range(100)]
