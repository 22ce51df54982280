import logging
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from starlette.requests import ClientDisconnect, Request
from starlette.responses import StreamingResponse

from service.app import create_app
from service.config.settings import Settings
from service.log_context import FIELDS
from service.services import services_of

pytestmark = pytest.mark.anyio


def access_fields(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [getattr(record, FIELDS) for record in caplog.records if record.name == "service.access"]


async def test_id_of_the_client_comes_back(client: AsyncClient) -> None:
    response = await client.get("/livez", headers={"X-Request-ID": "mine"})
    assert response.headers["x-request-id"] == "mine"


async def test_id_is_made_where_the_client_has_none(client: AsyncClient) -> None:
    ids = {(await client.get("/nowhere")).headers["x-request-id"] for _ in range(2)}
    assert len(ids) == 2
    assert all(len(made) == 32 for made in ids)


async def test_every_request_is_one_line_in_the_log(
    client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        await client.get("/models/vector")
        await client.get("/nowhere")
    first, second = access_fields(caplog)
    assert isinstance(first.pop("duration_ms"), float)
    assert first == {"method": "GET", "path": "/models/{name}", "status": 200, "model": "vector"}
    assert (second["path"], second["status"], second["model"]) == ("/nowhere", 404, None)


async def test_warnings_alone_are_logged_without_the_access_log(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(settings)
    with caplog.at_level(logging.WARNING):
        async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
            await client.get("/livez")
    assert access_fields(caplog) == []


async def test_fault_is_logged_and_not_shown(
    fresh_app: FastAPI, fresh_client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    @fresh_app.get("/fault")
    async def fail() -> None:
        raise ZeroDivisionError("secret")

    response = await fresh_client.get("/fault", headers={"X-Request-ID": "r9"})
    assert response.status_code == 500
    assert response.headers["x-request-id"] == "r9"
    assert response.json()["code"] == "internal_error"
    assert response.json()["details"] == {"request_id": "r9"}
    assert "secret" not in response.text
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert "secret" in str(record.exc_info[1])


async def test_fault_in_the_middle_of_an_response_cuts_it_off(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError("secret")

    @fresh_app.get("/half")
    async def response_half() -> StreamingResponse:
        return StreamingResponse(broken())

    with pytest.raises(ZeroDivisionError):
        await fresh_client.get("/half")


async def test_client_that_left_gets_a_status_of_its_own_in_the_log(
    fresh_app: FastAPI, fresh_client: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    @fresh_app.get("/left")
    async def leave() -> None:
        raise ClientDisconnect

    with caplog.at_level(logging.INFO), pytest.raises(AssertionError):  # nothing is sent to it
        await fresh_client.get("/left")
    assert access_fields(caplog)[0]["status"] == 499
    assert services_of(fresh_app).lifecycle.accepted == 0


async def test_while_draining_only_health_and_metrics_response(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    services_of(fresh_app).lifecycle.drain()
    for path in ("/livez", "/metrics"):
        assert (await fresh_client.get(path)).status_code == 200
    for path in ("/readyz", "/models", "/nowhere"):
        response = await fresh_client.get(path)
        assert response.status_code == 503
        assert response.json()["code"] == "shutting_down"
        assert response.headers["connection"] == "close"
        assert response.headers["retry-after"] == "1"
        assert "x-request-id" in response.headers


async def test_requests_count_as_accepted_but_health_does_not(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    lifecycle = services_of(fresh_app).lifecycle
    seen: list[int] = []

    @fresh_app.get("/count")
    async def count(request: Request) -> None:
        seen.append(services_of(request).lifecycle.accepted)

    await fresh_client.get("/count")
    assert seen == [1]
    assert lifecycle.accepted == 0


async def test_websockets_are_turned_away(app: FastAPI) -> None:
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "websocket.connect"}

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    scope = {"type": "websocket", "path": "/livez", "headers": [], "query_string": b"", "subprotocols": []}
    await app(scope, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]
