"""The page for people: complete, and on its own."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from service.description.page import render_docs

pytestmark = pytest.mark.anyio

VOID = {"meta", "br", "link"}
NAMES = {"href", "id", "class", "lang", "charset", "name", "content", "rel", "type", "src", "download"}


class Page(HTMLParser):
    """A page's elements, its text, and whatever it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert name in NAMES, name
            if name == "src" or (name == "href" and tag == "link"):
                self.assets.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


async def test_page_shows_every_operation(app: FastAPI, client: AsyncClient) -> None:
    response = await client.get("/docs")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    page = Page(response.text)
    assert not page.open
    for path, operations in app.openapi()["paths"].items():
        for method, operation in operations.items():
            assert f"{method}{path}" in page.ids
            for parameter in operation.get("parameters", ()):
                assert parameter["name"] in page.text
            for response in operation["responses"].values():
                assert response["description"].replace("`", "") in page.text
            for described in operation.get("requestBody", {}).get("content", {}).values():
                for example in described.get("examples", {}).values():
                    assert example.get("description", "").strip("`") in page.text
    for name in app.openapi()["components"]["schemas"]:
        assert f"schema-{name}" in page.ids


async def test_page_loads_files_of_its_own_only(client: AsyncClient) -> None:
    response = await client.get("/docs")
    page = Page(response.text)
    assert not page.tags & {"style", "img", "iframe", "object", "embed", "base"}
    for link in page.links:
        is_example = link.startswith("docs/examples/")
        assert is_example or link == "openapi.json" or (link[0] == "#" and link[1:] in page.ids), link
    assert page.assets == ["docs/icon.svg", "docs/page.css", "docs/try.js"]
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path in page.assets:
        asset = await client.get(f"/{path}")
        assert asset.status_code == 200
        assert asset.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"url\(|@import|https?:", asset.text.replace("http://www.w3.org/2000/svg", ""))
    assert (await client.get("/docs/none.js")).status_code == 404


async def test_examples_of_binary_bodies_are_files(client: AsyncClient) -> None:
    response = await client.get("/docs/examples/digit?media_type=image/png")
    assert response.content.startswith(b"\x89PNG")
    assert response.headers["content-type"] == "image/png"
    for query in ("digit?media_type=text/csv", "vector?media_type=image/png"):
        assert (await client.get(f"/docs/examples/{query}")).status_code == 404
    assert (await client.get("/docs/examples/none?media_type=image/png")).status_code == 404


async def test_page_follows_the_theme_of_the_reader(client: AsyncClient) -> None:
    assert "color-scheme: light dark" in (await client.get("/docs/page.css")).text


def test_whatever_the_description_holds_stays_text() -> None:
    hostile = "<script>alert(1)</script>\"'`&"
    schema: dict[str, Any] = {
        "type": "object",
        "description": hostile,
        "required": [hostile],
        "properties": {
            hostile: {"type": "string", "enum": [hostile], "default": hostile, "description": hostile}
        },
    }
    example = {"summary": hostile, "description": hostile, "value": hostile}
    content = {hostile: {"schema": {"$ref": f"#/{hostile}"}, "examples": {"a": example}}}
    operation = {
        "tags": [hostile],
        "summary": hostile,
        "description": hostile,
        "parameters": [{"name": hostile, "in": "query", "description": hostile, "schema": schema}],
        "requestBody": {"description": hostile, "content": content},
        "responses": {hostile: {"description": hostile, "content": content}},
    }
    description = {
        "info": {"title": hostile, "version": hostile, "description": hostile},
        "paths": {f"/{hostile}": {"post": operation}},
        "components": {"schemas": {hostile: schema}},
    }
    page = Page(render_docs(description))
    assert not page.open
    assert page.assets == ["docs/icon.svg", "docs/page.css", "docs/try.js"]
    assert not page.links or all(hostile not in link for link in page.links)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "anything"),
        (True, "anything"),
        (False, "nothing"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"const": 1}, "1"),
        (
            {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
            "array of array of number",
        ),
        ({"type": "string", "format": "binary"}, "bytes"),
        ({"type": "integer", "default": 3}, "integer, by default 3"),
    ],
)
def test_types_are_reported_in_words(schema: Any, words: str) -> None:
    parameter = {"name": "it", "in": "query", "required": True, "schema": schema}
    paths = {"/": {"get": {"parameters": [parameter]}}}
    page = Page(render_docs({"info": {"title": "", "version": ""}, "paths": paths}))
    assert f"itquery, needed{words}" in page.text
