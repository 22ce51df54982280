"""What README and docs show of measurements, settings, metrics and the API is what `make figures` writes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.docs.generated import response
from tests.docs.generated.blocks import names, put
from tests.docs.generated.pages import BLOCKS, FILES, pages, write_page

GENERATED = [page for page in pages() if names(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_pages_show_what_make_figures_writes(page: Path) -> None:
    committed = page.read_text(encoding="utf-8")
    assert committed == write_page(committed), f"{page.name} is out of date: run make figures"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_what_make_figures_writes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path](), f"{path.name} is out of date: run make figures"


def test_every_block_is_shown() -> None:
    assert {name for page in GENERATED for name in names(page.read_text(encoding="utf-8"))} == BLOCKS.keys()


def test_a_block_is_put_between_its_comments() -> None:
    page = "# Title\n\n<!-- begin speed: written by make figures -->\nold\n<!-- end speed -->\n\nrest\n"
    after = put(page, "speed", "fast\n")
    assert after == page.replace("old", "\nfast\n")
    assert put(after, "speed", "fast") == after
    with pytest.raises(ValueError, match="needs one"):
        put(page, "settings", "text")


def test_the_kept_response_is_what_a_server_returns() -> None:
    kept, now = response.load(), asyncio.run(response.record(runs=1, backend="numpy"))
    assert outline(kept) == outline(now)
    assert [best["label"] for best in kept["predictions"][0]] == [
        best["label"] for best in now["predictions"][0]
    ]
    assert [layer["name"] for layer in kept["trace"]["layers"]] == [
        layer["name"] for layer in now["trace"]["layers"]
    ]


def outline(value: Any) -> Any:
    """Return the keys and the kinds of what a response holds; of a list, those of its first element."""
    if isinstance(value, dict):
        return {key: outline(item) for key, item in value.items()}
    if isinstance(value, list):
        return [outline(item) for item in value[:1]]
    return type(value).__name__
