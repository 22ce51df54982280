"""Paths below a route prefix."""

from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.ray.route_prefix import RoutePrefix

pytestmark = pytest.mark.anyio


async def _seen(scope: Scope) -> Scope:
    found: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        found.append(scope)

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        raise NotImplementedError

    await RoutePrefix(app)(scope, receive, send)
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
