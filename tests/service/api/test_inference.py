"""The endpoint that runs models: faults on its way, and what is left of a request when it is answered."""

import gc
import json
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from starlette.types import Message

from service.api.infer import ModelResponse
from service.codec.response import EncodedResponse
from service.infer.exchange import InferExchange
from service.services import services_of
from service.v2.exchange import V2Exchange
from tests.service.scheduling.stubs import until
from tests.service.v2.bodies import json_input

GOOD = json.dumps({"inputs": [{"data": [-1, 0, 1]}]}).encode()
GOOD_V2 = json.dumps({"inputs": [json_input("0", np.zeros((1, 3), np.float32))]}).encode()
WAYS = {"/infer?model=vector": GOOD, "/v2/models/vector/infer": GOOD_V2}
FAULT = {
    "http_request_method": "POST",
    "http_route": "/infer",
    "http_response_status_code": "500",
}
pytestmark = pytest.mark.anyio


def broken(*_: object, **__: object) -> Any:
    raise ZeroDivisionError("secret")


@pytest.mark.parametrize(
    "place",
    [
        "service.infer.exchange.decode",
        "service.infer.exchange.encode",
        "service.infer.exchange.InferExchange.call",
        "service.infer.exchange.negotiate",
        "service.api.infer.ModelResponse",
    ],
)
async def test_fault_is_logged_and_answered_without_its_cause(
    fresh_app: FastAPI,
    fresh_client: AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(place, broken)
        response = await fresh_client.post(
            "/infer?model=vector", content=GOOD, headers={"X-Request-ID": "r9"}
        )
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert response.json()["details"] == {"request_id": "r9"}
    assert "secret" not in response.text
    assert "secret" in caplog.text
    registry = services_of(fresh_app).telemetry.metrics.registry
    assert registry.get_sample_value("http_server_request_duration_seconds_count", FAULT) == 1
    assert (await fresh_client.post("/infer?model=vector", content=GOOD)).status_code == 200


async def test_number_of_more_than_64_bits_is_repeated_in_the_error(client: AsyncClient) -> None:
    size = 2**63 - 1
    entry = {**json_input("0", np.zeros((1, 3), np.float32)), "parameters": {"binary_data_size": size}}
    del entry["data"]
    body = json.dumps({"inputs": [entry] * 3}).encode()
    headers = {"Inference-Header-Content-Length": str(len(body))}
    response = await client.post("/v2/models/vector/infer", content=body, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, "wrong_size")
    assert response.json()["details"]["expected"] == 3 * size


@pytest.mark.parametrize("path", WAYS)
@pytest.mark.parametrize("is_sound", [True, False])
async def test_nothing_of_a_request_outlives_its_response(
    client: AsyncClient, path: str, is_sound: bool
) -> None:
    def living() -> int:
        return sum(type(one) in (InferExchange, V2Exchange) for one in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = living()
        body = WAYS[path] if is_sound else WAYS[path].replace(b"inputs", b"input_")
        response = await client.post(path, content=body)
        assert response.status_code == (200 if is_sound else 422 if "?" in path else 400)
        await until(lambda: living() == before)
    finally:
        gc.enable()


@pytest.mark.parametrize(("size", "count"), [(10, 1), (1 << 16, 1), ((1 << 16) + 1, 2)])
async def test_pieces_of_a_small_body_are_sent_as_one(size: int, count: int) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the request was read")

    async def send(message: Message) -> None:
        sent.append(message)

    array = np.arange(size - 3, dtype=np.uint8)
    response = ModelResponse(EncodedResponse((b"{ }", memoryview(array.tobytes())), "a/b", {"X-Y": "z"}))
    await response({"type": "http"}, receive, send)
    start, *bodies = sent
    assert sorted(start["headers"]) == [
        (b"content-length", str(size).encode()),
        (b"content-type", b"a/b"),
        (b"x-y", b"z"),
    ]
    assert [message.get("more_body", False) for message in bodies] == [True] * (count - 1) + [False]
    assert b"".join(bytes(message["body"]) for message in bodies) == b"{ }" + array.tobytes()
