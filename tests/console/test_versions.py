"""Runs of several versions are not mixed up, and whole numbers are downloaded as they are."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.console.visit import Visit
from tests.service.models import VECTOR, add_model, add_versions
from tests.service.server.process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WHOLE = """
pnnx.Input      pnnx_input_0  0 1 0 #0=(1,2)i64
pnnx.Expression negated       1 1 0 1 expr=neg(@0) #0=(1,2)i64 #1=(1,2)i64
pnnx.Output     pnnx_output_0 1 0 1 #1=(1,2)i64
"""
LARGE = 2**53 + 1
"""The first whole number that a browser's numbers do not have."""


@pytest.fixture
def visit(browser: "Browser", tmp_path: Path) -> Iterator[Visit]:
    add_versions(tmp_path, "versions", {"1": VECTOR, "2": VECTOR})
    add_model(tmp_path, "whole", WHOLE)
    (tmp_path / "digits").symlink_to(ROOT / "models/digits")
    context = browser.new_context(viewport={"width": 390, "height": 844})
    with ServerProcess("--models", str(tmp_path), module="service") as server:
        yield Visit(context.new_page(), server.url)
        context.close()


def test_a_run_is_shown_with_its_own_version(visit: Visit) -> None:
    visit.open("#/versions/playground?version=1")
    visit.page.get_by_role("button", name="Run", exact=True).click()
    visit.page.get_by_text("version 1 ·").wait_for()
    for version in ("1", "2"):
        place = f"#/versions/timeline?version={version}"
        visit.page.evaluate("place => { location.hash = place; }", place)
        visit.page.get_by_text(f"of version {version},").wait_for()
    visit.check()


def test_whole_numbers_are_downloaded_as_they_are(visit: Visit) -> None:
    visit.open("#/whole/playground")
    visit.page.get_by_role("tab", name="Typed").click()
    typed = visit.page.locator("#typed")
    typed.fill(
        f'{{"inputs": [{{"name": "0", "shape": [1, 2], "dtype": "i64", "data": [{LARGE}, {LARGE}]}}]}}'
    )
    visit.page.get_by_role("button", name="Run", exact=True).click()
    visit.page.get_by_text("in the server").wait_for()
    visit.page.evaluate("location.hash = '#/whole/tensors?operand=1'")
    button = visit.page.get_by_role("button", name="Download .npy")
    button.wait_for()
    with visit.page.expect_download() as found:
        button.click()
    array = np.load(BytesIO(Path(found.value.path()).read_bytes()))
    assert array.dtype == np.int64
    assert array.tolist() == [[-LARGE, -LARGE]]
    # all are the same: one class, which ends where it begins
    assert visit.page.locator("[data-counts]").get_attribute("data-counts") == "2"
    visit.check()


def test_pages_that_were_opened_before_do_not_change_the_lessons(visit: Visit) -> None:
    visit.open("#/whole/tensors")
    visit.page.evaluate("location.hash = '#/whole/learn'")
    token = visit.page.locator(".token.operand").first
    token.wait_for()
    visit.settle()
    box = token.bounding_box()
    assert box is not None
    assert box["width"] < 120
    visit.page.evaluate("location.hash = '#/digits/compare'")
    visit.settle()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 390
    visit.check()
