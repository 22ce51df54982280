"""A browser, a server and a page of the console that takes note of all that goes wrong in it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console.models import add_embedding_model, add_hostile_model, add_large_model
from tests.console.visit import ORIGIN_ARGUMENTS, Visit
from tests.service.server.process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""What the browser is called on different systems."""


@pytest.fixture(scope="session")
def executable() -> str:
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser is installed; looked for {', '.join(NAMES)}")
    return found


@pytest.fixture(scope="module")  # its event loop must have ended before other tests start theirs
def browser(executable: str) -> "Iterator[Browser]":
    driver_module = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[console-test]'"
    )
    # who is root has no sandbox; containers of CI are
    arguments = [*ORIGIN_ARGUMENTS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with driver_module.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=executable, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def address(executable: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return where a server listens that has the digits, and models with hostile names, many operators, and ids."""
    del executable  # without a browser there is nothing to serve
    root = tmp_path_factory.mktemp("models")
    (root / "digits").symlink_to(ROOT / "models/digits")
    add_hostile_model(root)
    add_large_model(root, "large", 1500)
    add_embedding_model(root, "words", 3)
    with ServerProcess("--models", str(root), module="service") as server:
        yield server.url


@pytest.fixture(params=["light", "dark"])
def scheme(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def visit(browser: "Browser", address: str) -> Iterator[Visit]:
    """Return a page in a new context, which nothing was opened in yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, permissions=["camera"])
    yield Visit(context.new_page(), address)
    context.close()


@pytest.fixture
def samples() -> Path:
    return ROOT / "models/digits/samples"
