"""Clients that make too many requests are told when to come again; others are answered."""

from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from pydantic import SecretStr
from starlette.responses import PlainTextResponse
from starlette.types import Message, Scope

from service.app import create_app
from service.config.settings import Settings
from service.context import open_context
from service.http import rate_limit
from service.http.access import Access, AccessMiddleware
from service.http.rate_limit import RateLimitMiddleware, TokenBuckets

pytestmark = pytest.mark.anyio


def test_a_bucket_holds_the_tokens_of_a_second() -> None:
    buckets = TokenBuckets(2.0)
    assert [buckets.take("a", 0.0) for _ in range(4)] == [0.0, 0.0, 0.5, 0.5]
    assert buckets.take("b", 0.0) == 0.0
    assert buckets.take("a", 0.25) == 0.25
    assert [buckets.take("a", 0.5) for _ in range(2)] == [0.0, 0.5]
    assert [buckets.take("a", 1000.0) for _ in range(3)] == [0.0, 0.0, 0.5]


def test_a_rate_below_one_allows_single_requests() -> None:
    buckets = TokenBuckets(0.1)
    assert [round(buckets.take("a", now), 6) for now in (0.0, 0.0, 9.0, 10.5)] == [0.0, 10.0, 1.0, 0.0]


def test_only_so_many_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "CLIENTS_KEPT", 2)
    buckets = TokenBuckets(1.0)
    for client in "abcb":
        buckets.take(client, 0.0)
    assert buckets.take("a", 0.0) == 0.0
    assert buckets.take("b", 0.0) > 0


KEY, OTHER = "key-0123456789abcdef", "other-0123456789abcdef"


class Server:
    """A server that allows one request per second, and time that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> None:
        monkeypatch.setattr(rate_limit, "monotonic", lambda: 5.0)
        limited = RateLimitMiddleware(PlainTextResponse("fine"), TokenBuckets(1.0))
        self._app = AccessMiddleware(limited, Access(Settings(**keys)))

    async def ask(
        self, path: str = "/infer", address: str = "here", **headers: str
    ) -> dict[bytes, bytes] | int:
        """Return the status of an answer, and the headers of a refusal."""
        scope: Scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "client": (address, 1),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }
        open_context(scope)
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            return {"type": "http.request"}

        await self._app(scope, receive, send)
        return dict(sent[0]["headers"]) if sent[0]["status"] == 429 else int(sent[0]["status"])


async def test_an_address_that_asks_too_often_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, admin_keys=SecretStr(KEY))
    assert await server.ask() == 200
    refused = await server.ask(x_api_key="another", content_length="3")
    assert isinstance(refused, dict)
    assert (refused[b"retry-after"], refused[b"connection"]) == (b"1", b"close")
    assert b"connection" not in (await server.ask(content_length="0") or {})  # type: ignore[operator]
    assert await server.ask(address="there") == 200
    assert [await server.ask("/livez") for _ in range(3)] == [200] * 3


async def test_a_key_is_limited_wherever_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, api_keys=SecretStr(f"{KEY},{OTHER}"))
    assert await server.ask(x_api_key=KEY) == 200
    assert isinstance(await server.ask(address="there", authorization=f"Bearer {KEY}"), dict)
    assert isinstance(await server.ask(x_api_key="new", authorization=f"Bearer {KEY}"), dict)
    assert await server.ask(x_api_key=OTHER) == 200


@pytest.mark.parametrize("keys", [{}, {"api_keys": SecretStr("key-0123456789abcdef")}])
async def test_the_setting_limits_the_application(models: Path, keys: dict[str, Any]) -> None:
    app = create_app(Settings(models=models, workers=1, rate_limit=0.001, **keys))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        headers = {"X-API-Key": "key-0123456789abcdef"}
        if keys:  # who has no key takes no tokens
            assert (await client.get("/models", headers={"X-API-Key": "wrong"})).status_code == 401
        assert (await client.get("/models", headers=headers)).status_code == 200
        refused = await client.post("/infer?model=vector", headers=headers, content=b"x")
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert 0 < int(refused.headers["Retry-After"]) <= 1000
        assert (await client.get("/livez")).status_code == 200
