"""What goes past the application's layers is answered as if it went through them."""

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.shortcut import ShortcutMiddleware

pytestmark = pytest.mark.anyio

VECTOR = {"inputs": [{"name": "0", "shape": [1, 3], "datatype": "FP32", "data": [-1, 0, 1]}]}
SMALL = {"inputs": [{"data": [[-1, 0, 1]]}]}
BROKEN = {"inputs": [{"data": [1]}]}
CASES = [
    ("POST", "/infer?model=vector&trace=off", SMALL),
    ("POST", "/infer?model=vector", BROKEN),
    ("POST", "/infer?model=vector&trace=x", SMALL),
    ("POST", "/infer?model=none", SMALL),
    ("GET", "/infer?model=vector", None),
    ("POST", "/infer/?model=vector", SMALL),
    ("POST", "/v2/models/vector/infer", VECTOR),
    ("POST", "/v2/models/vect%6Fr/infer", VECTOR),
    ("POST", "/v2/models/vector/versions/1/infer", VECTOR),
    ("POST", "/v2/models/vector/versions/7/infer", VECTOR),
    ("POST", "/v2/models/vector/infer", BROKEN),
    ("POST", "/v2/models/vector/infer", {}),
    ("POST", "/v2/models/none/infer", VECTOR),
    ("POST", "/v2/models/ve%2Fctor/infer", VECTOR),
    ("POST", "/v2/models//infer", VECTOR),
    ("POST", "/v2/models/infer", VECTOR),
    ("POST", "/v2/models/vector/version/1/infer", VECTOR),
    ("POST", "/v2/models/vector/versions//infer", VECTOR),
    ("POST", "/v2/models/vector/versions/1/infer/", VECTOR),
    ("GET", "/v2/models/vector/infer", None),
]


async def _answers(client: AsyncClient) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for number, (method, path, body) in enumerate(CASES):
        answer = await client.request(method, path, json=body, headers={"X-Request-ID": str(number)})
        kept = {name: value for name, value in answer.headers.items() if name != "content-length"}
        text = answer.json()
        text.pop("timing", None)
        text.pop("trace", None)
        found.append((method, path, answer.status_code, kept, text))
    return found


async def test_answers_are_those_of_the_routes(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        short = await _answers(client)
        monkeypatch.setattr(ShortcutMiddleware, "_find", lambda self, path: None)
        assert await _answers(client) == short
    statuses = [answer[2] for answer in short]
    assert statuses.count(200) == 4


async def test_metrics_tell_the_routes_as_ever(client: AsyncClient) -> None:
    await client.post("/v2/models/vector/versions/1/infer", json=VECTOR)
    await client.post("/infer?model=vector", json=SMALL)
    text = (await client.get("/metrics")).text
    for route in ("/v2/models/{name}/versions/{version}/infer", "/infer"):
        labels = f'http_request_method="POST",http_response_status_code="200",http_route="{route}"'
        assert f"http_server_request_duration_seconds_count{{{labels}}} 1.0" in text
