"""What requests are refused with before a route is called is in the API's description."""

from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Response
from pydantic import SecretStr

from service.app import create_app
from service.config.settings import Settings
from service.schemas import ErrorBody

pytestmark = pytest.mark.anyio

KEY, ADMIN = "key-0123456789abcdef", "admin-0123456789abcdef"
SETTINGS: list[dict[str, Any]] = [
    {},
    {"host": "0.0.0.0"},  # it is not listened on
    {"api_keys": SecretStr(KEY), "admin_keys": SecretStr(ADMIN)},
]
HEADERS = [
    {},
    {"X-API-Key": KEY},
    {"X-API-Key": ADMIN},
    {"Host": "evil.example"},
    {"Origin": "https://evil.example", "X-API-Key": KEY},
    {"Sec-Fetch-Site": "cross-site"},
]


def visitor(models: Path, settings: dict[str, Any]) -> AsyncClient:
    """Return a client of an application whose models are not loaded: what they would answer is not looked at here."""
    app = create_app(Settings(models=models, workers=1, **settings))
    return AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1:8000")


def path_of(template: str) -> str:
    return template.format(name="vector", version="1", request_id="r1", file="a.png")


@pytest.mark.parametrize("settings", SETTINGS, ids=["loopback", "everywhere", "keys"])
async def test_every_refusal_is_described(models: Path, settings: dict[str, Any]) -> None:
    seen = set()
    async with visitor(models, settings) as client:
        described = create_app(Settings(models=models, **settings)).openapi()["paths"]
        for template, operations in described.items():
            for method, operation in operations.items():
                for headers in HEADERS * 2:
                    response = await client.request(method, path_of(template), headers=headers)
                    assert str(response.status_code) in operation["responses"], (
                        method,
                        template,
                        response.text,
                    )
                    seen.add(check(response))
    expected = {"origin_refused"}
    expected |= {"host_refused"} if "host" not in settings else set()
    expected |= {"key_needed", "admin_key_needed"} if "api_keys" in settings else set()
    assert expected == seen & {
        "origin_refused",
        "host_refused",
        "key_needed",
        "admin_key_needed",
    }


def check(response: Response) -> str | None:
    """Return the code of a refusal, whose form has to be the one that is described."""
    if response.status_code < 400:
        return None
    return ErrorBody.model_validate(response.json(), strict=True).code


async def test_only_what_is_answered_is_described(models: Path) -> None:
    paths = create_app(Settings(models=models, host="0.0.0.0")).openapi()["paths"]  # as above
    for operations in paths.values():
        for method, operation in operations.items():
            assert not {"421", "429"} & set(operation["responses"])
            assert ("403" in operation["responses"]) == (method in ("post", "delete"))
    paths = create_app(Settings(models=models)).openapi()["paths"]
    assert "429" not in paths["/livez"]["get"]["responses"]
    refused = paths["/v2/repository/models/{name}/load"]["post"]["responses"]["403"]["description"]
    assert "turned off" in refused
    assert "another origin" in refused
