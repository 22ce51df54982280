"""Paths below a route prefix, and the header of a response that names its request."""

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.ray.replica import behind_ingress

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("asked", "answered", "left"),
    [
        ([b"one"], [b"one"], []),
        ([b"one", b"two"], [b"two"], [b"two"]),  # Ray takes the first
        ([b"not; sound"], [b"chosen"], [b"chosen"]),
        ([], [b"chosen"], [b"chosen"]),
    ],
)
async def test_an_id_that_ray_adds_is_taken_away(
    asked: list[bytes], answered: list[bytes], left: list[bytes]
) -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        fields = [(b"X-Request-ID", value) for value in answered]
        await send({"type": "http.response.start", "status": 200, "headers": [*fields, (b"etag", b"1")]})
        await send({"type": "http.response.body", "body": b"x"})

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(b"x-request-id", value) for value in asked]}
    await behind_ingress(app)(scope, receive, send)
    assert sent[0]["headers"] == [*((b"x-request-id", value) for value in left), (b"etag", b"1")]
    assert sent[1] == {"type": "http.response.body", "body": b"x"}


async def _seen(scope: Scope) -> Scope:
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope)

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        raise NotImplementedError

    await behind_ingress(app)(scope, receive, send)
    return found[0]


def _request(prefix: str, path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "root_path": prefix,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"a=1",
    }


@pytest.mark.parametrize(
    ("prefix", "path", "wanted"),
    [
        ("", "/v2/models/digits", "/v2/models/digits"),
        ("/digits", "/digits/v2/health/ready", "/v2/health/ready"),
        ("/digits", "/digits", "/"),
        ("/digits", "/digits/", "/"),
        ("/proxy/digits", "/proxy/digits/infer", "/infer"),
        ("/v2/models/digits", "/v2/models/digits/infer", "/v2/models/digits/infer"),
        ("/v2/models/digits", "/v2/models/digits", "/v2/models/digits"),
        ("/models/digits", "/models/digits:predict", "/models/digits:predict"),
        ("/v2", "/v2/health/ready", "/v2/health/ready"),
        ("/models", "/models", "/models"),
        ("/modelship", "/modelship/infer", "/infer"),
    ],
)
async def test_a_prefix_is_taken_away_unless_it_names_a_model(prefix: str, path: str, wanted: str) -> None:
    given = _request(prefix, path)
    seen = await _seen(dict(given))
    assert (seen["path"], seen["raw_path"], seen["root_path"]) == (wanted, wanted.encode(), "")
    assert seen["query_string"] == b"a=1"


async def test_the_scope_of_ray_stays_as_it_is() -> None:
    given = _request("/digits", "/digits/infer")
    await _seen(given)
    assert given == _request("/digits", "/digits/infer")


async def test_a_scope_without_a_prefix_is_passed_on() -> None:
    lifespan: Scope = {"type": "lifespan"}
    assert await _seen(lifespan) is lifespan
