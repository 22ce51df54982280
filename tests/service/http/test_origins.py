"""Which requests of browsers are answered."""

from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.types import Message, Receive, Scope, Send

from service.app import create_app
from service.config.settings import Settings
from service.context import open_context
from service.http.guard import GuardMiddleware, OriginPolicy
from service.lifecycle import Lifecycle

pytestmark = pytest.mark.anyio

RUN, CHANGE = "/infer", "/v2/repository/models/digits/unload"
OWN, LISTED, EVIL = "http://localhost:8000", "https://app.example", "https://evil.example"


def status(method: str, path: str, settings: Any = None, **headers: str) -> int:
    sent = {"host": "localhost:8000"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {"method": method, "path": path, "server": ("127.0.0.1", 8000)}
    policy = OriginPolicy(Settings(**(settings or {})))
    refused = policy.refusal(scope, {name.encode(): value.encode() for name, value in sent.items()})
    return 200 if refused is None else refused.status


@pytest.mark.parametrize("path", [RUN, CHANGE, "/v2/repository/index", "/nowhere"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_pages_of_other_origins_send_nothing_but_reading_requests(method: str, path: str) -> None:
    assert status(method, path) == 200  # no browser
    assert status(method, path, origin=OWN) == 200
    assert status(method, path, origin=OWN, sec_fetch_site="same-origin") == 200
    assert status(method, path, sec_fetch_site="none") == 200
    for origin in (
        EVIL,
        "null",
        "",
        "http://localhost:3000",
        "http://localhost",
        "http://localhost:8000.evil",
    ):
        assert status(method, path, origin=origin) == 403, origin
    for site in ("cross-site", "same-site", "", "Same-Origin-Not"):
        assert status(method, path, sec_fetch_site=site) == 403, site
        assert status(method, path, sec_fetch_site=site, origin=OWN) == 403, site


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reading_is_for_cors_to_decide(method: str) -> None:
    assert status(method, "/models", origin=EVIL, sec_fetch_site="cross-site") == 200


@pytest.mark.parametrize("path", [RUN, CHANGE])
def test_origins_that_are_listed_are_answered(path: str) -> None:
    listed = {"cors_origins": (LISTED,)}
    assert status("POST", path, listed, origin=LISTED, sec_fetch_site="cross-site") == 200
    assert status("POST", path, listed, origin=EVIL, sec_fetch_site="cross-site") == 403
    assert status("POST", path, listed, sec_fetch_site="cross-site") == 403


def test_star_lets_all_pages_run_models_and_none_change_the_server() -> None:
    everyone = {"cors_origins": ("*",)}
    assert status("POST", RUN, everyone, origin=EVIL, sec_fetch_site="cross-site") == 200
    assert status("POST", CHANGE, everyone, origin=EVIL, sec_fetch_site="cross-site") == 403
    assert status("POST", CHANGE, {"cors_origins": ("*", LISTED)}, origin=LISTED) == 200


def test_browser_behind_a_proxy_that_sends_another_host_is_believed() -> None:
    assert status("POST", RUN, origin="https://models.example", sec_fetch_site="same-origin") == 200


def test_name_that_was_resolved_again_is_refused_whatever_else_is_sent() -> None:
    same = {
        "origin": "http://evil.example:8000",
        "sec_fetch_site": "same-origin",
        "host": "evil.example:8000",
    }
    assert status("POST", CHANGE, **same) == 421
    assert status("GET", "/models", host="evil.example:8000") == 421
    assert status("POST", CHANGE, {"allowed_hosts": ("evil.example",)}, **same) == 200


def test_refusal_names_origin_and_setting() -> None:
    scope = {"method": "POST", "path": CHANGE}
    refused = OriginPolicy(Settings()).refusal(scope, {b"origin": b"https://" + b"e" * 60_000})
    assert refused is not None
    assert refused.code == "origin_refused"
    assert refused.details["setting"] == "cors_origins"
    assert len(str(refused.body())) < 500


async def test_body_of_a_refused_request_is_not_asked_for() -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("the body was read")

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the request went on")

    headers = [(b"origin", EVIL.encode()), (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "path": RUN, "headers": headers}
    open_context(scope)
    await GuardMiddleware(app, Lifecycle(), OriginPolicy(Settings()))(scope, receive, send)
    assert sent[0]["status"] == 403
    assert (b"connection", b"close") in sent[0]["headers"]


async def test_pages_of_listed_origins_go_on_and_others_get_the_reason(models: Path) -> None:
    app = create_app(Settings(models=models, workers=1, cors_origins=(LISTED,)))
    question = {"inputs": [{"data": [[-1, 0, 1]]}]}
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url=OWN) as client,
    ):
        for origin, status in ((LISTED, 200), (OWN, 200), (EVIL, 403)):
            response = await client.post("/infer?model=vector", json=question, headers={"Origin": origin})
            assert response.status_code == status
            assert response.headers["x-request-id"]
        assert response.json()["code"] == "origin_refused"
