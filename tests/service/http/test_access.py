"""Who is let in, by keys."""

import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from pydantic import SecretStr
from starlette.types import Message, Receive, Scope, Send

from service.app import create_app
from service.config.settings import Settings, load_settings
from service.errors import ServiceError
from service.http.access import Access, AccessMiddleware, credentials
from service.http.paths import is_admin_call
from service.services import services_of
from tests.service.conftest import client_of, running

pytestmark = pytest.mark.anyio

API, ADMIN = "api-0123456789abcdef", "admin-0123456789abcdef"
ADMIN_CALLS = [
    "/v2/repository/models/vector/load",
    "/v2/repository/models/vector/unload",
    "/v2/trace/setting",
    "/v2/models/vector/trace/setting",
    "/v2/models/vector/versions/1/trace/setting",
    "/v2/logging",
]
HEALTH = ["/livez", "/readyz", "/v2/health/live", "/v2/health/ready"]


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def access(**settings: Any) -> Access:
    return Access(Settings(**settings))


def status(access: Access, method: str, path: str, *keys: str) -> int:
    headers = [(b"x-api-key", key.encode()) for key in keys]
    try:
        access.check(method, path, headers)
    except ServiceError as refusal:
        return refusal.status
    return 200


@pytest.fixture(scope="module")
def keyed_settings(models: Path) -> Settings:
    keys: dict[str, Any] = {"api_keys": SecretStr(API), "admin_keys": SecretStr(ADMIN)}
    return Settings(models=models, cors_origins=("https://a.example",), workers=1, **keys)


@pytest.fixture(scope="module")
async def keyed(keyed_settings: Settings) -> AsyncIterator[FastAPI]:
    async with running(keyed_settings) as created:
        yield created


@pytest.fixture(scope="module")
async def visitor(keyed: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_of(keyed) as created:
        yield created


def test_without_keys_everything_is_open() -> None:
    for path in ("/", "/infer", *ADMIN_CALLS, *HEALTH):
        assert status(access(), "POST", path) == 200


def test_api_keys_guard_everything_but_health() -> None:
    guarded = access(api_keys=API)
    for path in ("/", "/infer", "/models", "/v2", "/v2/models/vector/ready", "/metrics", "/docs", "/nowhere"):
        assert status(guarded, "GET", path) == 401
        assert status(guarded, "GET", path, "wrong") == 401
        assert status(guarded, "GET", path, API) == 200
    for path in HEALTH:
        assert status(guarded, "GET", path) == 200


def test_metrics_can_be_opened_and_documentation_not() -> None:
    opened = access(api_keys=API, open_metrics=True)
    assert (status(opened, "GET", "/metrics"), status(opened, "GET", "/docs")) == (200, 401)
    assert status(opened, "GET", "/openapi.json") == 401
    assert status(opened, "GET", "/docs/try.js") == 401


@pytest.mark.parametrize("path", ADMIN_CALLS)
def test_admin_calls_need_an_admin_key(path: str) -> None:
    both = access(api_keys=API, admin_keys=ADMIN)
    assert [status(both, "POST", path, *keys) for keys in ((), ("wrong",), (API,), (ADMIN,))] == [
        401,
        401,
        403,
        200,
    ]
    admin_only = access(admin_keys=ADMIN)
    assert [status(admin_only, "POST", path, *keys) for keys in ((), ("wrong",), (ADMIN,))] == [401, 401, 200]
    assert status(admin_only, "POST", "/infer") == 200
    api_only = access(api_keys=API)
    assert [status(api_only, "POST", path, *keys) for keys in ((), (API,))] == [401, 403]


def test_admin_keys_are_good_for_everything() -> None:
    assert status(access(api_keys=API, admin_keys=ADMIN), "POST", "/infer", ADMIN) == 200


def test_reading_what_administration_changes_needs_no_admin_key() -> None:
    guarded = access(api_keys=API, admin_keys=ADMIN)
    assert status(guarded, "GET", "/v2/trace/setting", API) == 200
    assert status(guarded, "POST", "/v2/repository/index", API) == 200


@pytest.mark.parametrize(
    ("method", "path", "admin"),
    [
        ("POST", "/v2/repository/models/a%2Fb/load", True),
        ("POST", "/v2/repository/models/a/b\n/unload/", True),
        ("PUT", "/v2/models/m/trace/setting", True),
        ("POST", "/v2/models/load/infer", False),
        ("POST", "/v2/models/m/infer", False),
        ("GET", "/v2/logging", False),
    ],
)
def test_admin_calls_are_known_by_method_and_path(method: str, path: str, admin: bool) -> None:
    assert is_admin_call(method, path) == admin


async def test_every_route_that_changes_something_is_an_admin_call(keyed: FastAPI) -> None:
    paths = keyed.openapi()["paths"]
    writing = {path for path, operations in paths.items() if set(operations) - {"get", "head"}}
    assert "/infer" in writing
    harmless = {
        path
        for path in writing
        if path == "/infer"
        or re.search(
            r"/infer$|^/v2/repository/index$|:(predict|explain)$|^/v1/embeddings$|^/compare$|^/expression$",
            path,
        )
    }
    assert {path for path in writing if not is_admin_call("POST", path)} == harmless


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ([], []),
        ([(b"authorization", b"Bearer  k ")], [b"k"]),
        ([(b"authorization", b"bearer k")], [b"k"]),
        ([(b"authorization", b"Basic k")], []),
        ([(b"authorization", b"Bearer")], []),
        ([(b"x-api-key", b" k ")], [b"k"]),
        ([(b"x-api-key", b"")], []),
        ([(b"authorization", b"Basic k"), (b"x-api-key", b"l")], [b"l"]),
        ([(b"authorization", b"Bearer k"), (b"x-api-key", b"l"), (b"x-api-key", b"m")], [b"k", b"l"]),
    ],
)
def test_keys_come_in_either_header(headers: list[tuple[bytes, bytes]], keys: list[bytes]) -> None:
    assert credentials(headers) == keys


async def test_responses_show_what_is_missing(visitor: AsyncClient) -> None:
    response = await visitor.get("/models", headers={"X-Request-ID": "r1"})
    assert (response.status_code, response.json()["code"]) == (401, "key_needed")
    assert list(response.json()) == ["error", "code", "details"]
    assert response.headers["www-authenticate"] == 'Bearer realm="kuiper"'
    assert response.headers["x-request-id"] == "r1"
    response = await visitor.get("/models", headers=bearer("guessed-secret"))
    assert (response.status_code, response.json()["code"]) == (401, "unknown_key")
    assert response.headers["www-authenticate"] == 'Bearer realm="kuiper", error="invalid_token"'
    response = await visitor.post("/v2/logging", headers=bearer(API))
    assert (response.status_code, response.json()["code"]) == (403, "admin_key_needed")
    assert (await visitor.get("/models", headers=bearer(API))).status_code == 200
    assert (await visitor.get("/models", headers={"X-API-Key": API})).status_code == 200


async def test_admin_calls_without_admin_keys_say_why(models: Path) -> None:
    app = create_app(Settings(models=models, api_keys=SecretStr(API)))
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as client:
        response = await client.post("/v2/logging", headers=bearer(API))
    assert (response.status_code, response.json()["code"]) == (403, "admin_disabled")
    assert "admin_keys" in response.json()["error"]


async def test_paths_that_do_not_exist_are_not_reported(visitor: AsyncClient) -> None:
    assert (await visitor.get("/nowhere")).status_code == 401
    assert (await visitor.get("/nowhere", headers=bearer(API))).status_code == 404


async def test_body_of_a_refused_request_is_not_asked_for() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the request went on")

    scope = {"type": "http", "method": "POST", "path": "/infer", "headers": []}
    await AccessMiddleware(app, access(api_keys=API))(scope, receive, send)
    assert sent[0]["status"] == 401


async def test_keys_are_never_shown(
    keyed: FastAPI, visitor: AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    seen = [repr(services_of(keyed).settings), str(services_of(keyed).settings.model_dump())]
    with caplog.at_level(logging.DEBUG):
        for key in (API, ADMIN, "guessed-secret"):
            for path in ("/models", "/infer", "/metrics", "/nowhere", "/v2/logging"):
                response = await visitor.request("POST", path, headers=bearer(key))
                seen += [response.text, str(response.headers)]
    seen.append(caplog.text + str([record.__dict__ for record in caplog.records]))
    for text in seen:
        assert not re.search("0123456789abcdef|guessed-secret", text)


def test_keys_are_never_shown_in_errors_of_settings(tmp_path: Path) -> None:
    file = tmp_path / "kuiper.toml"
    file.write_text(f'api_keys = ["{API}"]\n')
    with pytest.raises(ValueError, match="api_keys: input should be a valid string") as refused:
        load_settings({"config": file})
    assert API not in str(refused.value)


async def test_preflight_needs_no_key(visitor: AsyncClient) -> None:
    asks = {
        "Origin": "https://a.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-api-key,content-type",
    }
    response = await visitor.options("/infer", headers=asks)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://a.example"
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "authorization" in response.headers["access-control-allow-headers"]
    assert "x-request-id" in response.headers
    refused = await visitor.options("/infer", headers=asks | {"Origin": "https://b.example"})
    assert (refused.status_code, refused.json()["code"]) == (400, "cors_refused")
    assert refused.json()["error"] == "Disallowed CORS origin"
    assert "access-control-allow-origin" not in refused.headers
    assert "x-request-id" in refused.headers
    wrong_method = await visitor.options("/infer", headers=asks | {"Access-Control-Request-Method": "BREW"})
    assert (wrong_method.status_code, wrong_method.json()["error"]) == (400, "Disallowed CORS method")
    assert wrong_method.headers["access-control-allow-origin"] == "https://a.example"
    assert "Origin" in wrong_method.headers["vary"]


async def test_pages_of_an_allowed_origin_can_read_responses_and_errors(keyed_settings: Settings) -> None:
    origin = {"Origin": "https://a.example"}
    async with running(keyed_settings) as app, client_of(app) as client:

        @app.get("/fault")
        async def fail() -> None:
            raise ZeroDivisionError

        responses = [
            await client.get("/models", headers=origin | bearer(API)),
            await client.get("/models", headers=origin),
            await client.get("/fault", headers=origin | bearer(API)),
        ]
        services_of(app).lifecycle.drain()
        responses.append(await client.get("/models", headers=origin | bearer(API)))
        other = await client.get("/models", headers={"Origin": "https://b.example"} | bearer(API))
    assert [response.status_code for response in responses] == [200, 401, 500, 503]
    for response in responses:
        assert response.headers["access-control-allow-origin"] == "https://a.example"
        assert "X-Request-ID" in response.headers["access-control-expose-headers"]
        assert "x-request-id" in response.headers
    assert "access-control-allow-origin" not in other.headers


async def test_pages_of_other_origins_are_not_answered_by_default(client: AsyncClient) -> None:
    response = await client.get("/models", headers={"Origin": "https://a.example"})
    assert not [name for name in response.headers if name.startswith("access-control")]
