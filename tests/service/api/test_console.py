"""The console's files: those of the tree, and nothing else, with headers that let a browser run nothing else."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient
from pydantic import SecretStr

from service.api.console import CONSOLE_FILES, MEDIA_TYPES, read_console_file
from service.app import create_app
from service.config.settings import Settings
from tests.cases import check_each

pytestmark = pytest.mark.anyio

FILES = sorted(
    path.relative_to(CONSOLE_FILES).as_posix() for path in CONSOLE_FILES.rglob("*") if path.is_file()
)
PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
KEY = "0123456789abcdef0123"


@pytest.fixture
async def keyed(models: Path) -> AsyncIterator[AsyncClient]:
    async for client in serve(Settings(models=models, workers=1, api_keys=SecretStr(KEY))):
        yield client


async def serve(settings: Settings) -> AsyncIterator[AsyncClient]:
    app = create_app(settings)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        yield client


async def test_files_are_those_of_the_tree(client: AsyncClient) -> None:
    def check(path: str) -> None:
        assert responses[path].status_code == 200
        assert responses[path].content == (CONSOLE_FILES / path).read_bytes()
        assert responses[path].headers["content-type"] == MEDIA_TYPES[Path(path).suffix]

    responses = {path: await client.get(f"/console/{path}") for path in FILES}
    check_each(FILES, check)


async def test_page_lets_the_browser_load_and_run_its_own_files_only(client: AsyncClient) -> None:
    response = await client.get("/console")
    assert response.content == (CONSOLE_FILES / "index.html").read_bytes()
    policy = dict(
        directive.split(" ", 1) for directive in response.headers["content-security-policy"].split("; ")
    )
    assert "unsafe" not in str(policy)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "'none'"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in response.headers


async def test_what_has_not_changed_is_not_sent_again(client: AsyncClient) -> None:
    first = await client.get("/console")
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    again = await client.get("/console", headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    other = await client.get("/console", headers={"If-None-Match": '"other"'})
    assert (other.status_code, other.content) == (200, first.content)


@pytest.mark.parametrize(
    "path",
    [
        "../routes/console.py",
        "/etc/hostname",
        "style/../../app.py",
        "none.js",
        "script",
        "a\0.js",
        "x" * 5000 + ".js",
        "../console/index.html",
    ],
)
def test_nothing_else_is_read(path: str) -> None:
    assert read_console_file(path) is None


async def test_what_is_not_there_is_an_error_like_others(client: AsyncClient) -> None:
    response = await client.get("/console/%2e%2e/app.py")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_slash_after_its_name_leads_to_the_page(client: AsyncClient) -> None:
    response = await client.get("/console/")
    assert (response.status_code, response.headers["location"]) == (307, "../console")


async def test_browsers_that_ask_for_the_server_get_the_page(client: AsyncClient) -> None:
    response = await client.get("/", headers=PAGE)
    assert (response.status_code, response.headers["location"]) == (307, "console")
    assert response.headers["vary"] == (await client.get("/")).headers["vary"] == "Accept"
    assert "/console" in (await client.get("/")).json()["endpoints"]


async def test_page_is_open_where_all_else_needs_a_key(keyed: AsyncClient) -> None:
    for path in ("/console", *(f"/console/{path}" for path in FILES)):
        assert (await keyed.get(path)).status_code == 200
    assert (await keyed.get("/", headers=PAGE)).headers["location"] == "console"
    for path in ("/", "/models", "/consoles"):
        assert (await keyed.get(path)).status_code == 401
    assert (await keyed.get("/models", headers=PAGE)).status_code == 401
