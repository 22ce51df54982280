"""Which types the JSON body of a call that changes the server may have."""

import pytest
from httpx import AsyncClient

pytestmark = pytest.mark.anyio

BODY = b'{"trace_rate": "5"}'


async def change(client: AsyncClient, body: bytes = BODY, **headers: str) -> int:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    response = await client.post("/v2/trace/setting", content=body, headers=sent)
    if response.status_code != 200:
        assert response.json()["code"] == "unsupported_media_type", response.text
        assert "expected Content-Type: application/json" in response.json()["error"]
    return response.status_code


@pytest.mark.parametrize(
    "name", ["application/json", "Application/JSON; charset=utf-8", "application/x+json"]
)
async def test_json_is_taken(client: AsyncClient, name: str) -> None:
    assert await change(client, content_type=name) == 200


@pytest.mark.parametrize(
    "name", ["text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", "text/html", "x"]
)
@pytest.mark.parametrize("body", [BODY, b""])
async def test_what_a_page_may_send_without_asking_is_refused(
    client: AsyncClient, name: str, body: bytes
) -> None:
    assert await change(client, body, content_type=name) == 400


async def test_clients_that_name_no_type_go_on_working(client: AsyncClient) -> None:
    assert await change(client) == 200
    assert await change(client, content_type="application/octet-stream") == 200  # tritonclient's asyncio


async def test_data_of_curl_is_taken_and_forms_of_browsers_are_not(client: AsyncClient) -> None:
    form = "application/x-www-form-urlencoded"
    assert await change(client, content_type=form) == 200
    assert await change(client, content_type=form, sec_fetch_site="same-origin") == 400
    assert await change(client, content_type=form, origin="http://test") == 400
