"""Every page: its own files only, nothing blocked, no error, nothing that keyboards and screen readers do not reach."""

from pathlib import Path

import pytest

from service.api.console import CONSOLE_FILES
from tests.console.models import LABEL, MARKUP
from tests.console.visit import Visit
from tests.service.api.responses import bright

PAGES = sorted(path.parent.name for path in CONSOLE_FILES.glob("script/views/*/page.js"))
_CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]"
_FOCUSABLE = f"""() => [...document.querySelectorAll({_CONTROLS!r})].filter(element =>
  !element.disabled && element.tabIndex >= 0 && element.type !== "hidden"
  && !(element.type === "radio" && !element.checked) && element.checkVisibility({{visibilityProperty: true}})
).map((element, place) => {{ element.dataset.place = place; return element.outerHTML.slice(0, 120); }})"""
_FOCUSED = "() => document.activeElement?.dataset.place ?? null"


@pytest.mark.parametrize("name", PAGES)
def test_page_keeps_to_itself_and_is_accessible(visit: Visit, name: str, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="axe is not installed: pip install -e '.[console-test]'",
    )
    visit.page.emulate_media(color_scheme=scheme)
    visit.open(f"#/digits/{name}")
    results = axe.Axe().run(visit.page)
    assert results.violations_count == 0, results.generate_report()
    visit.check()


@pytest.mark.parametrize("name", PAGES)
def test_every_control_is_reached_by_keyboard(visit: Visit, name: str) -> None:
    visit.open(f"#/digits/{name}")
    controls = visit.page.evaluate(_FOCUSABLE)
    reached: set[int] = set()
    for _ in range(2 * len(controls) + 10):
        visit.page.keyboard.press("Tab")
        place = visit.page.evaluate(_FOCUSED)
        if place is not None:
            reached.add(int(place))
        if len(reached) == len(controls):
            break
    assert not [text for place, text in enumerate(controls) if place not in reached]


@pytest.mark.parametrize("name", PAGES)
def test_names_stay_text(visit: Visit, name: str) -> None:
    visit.open(f"#/hostile/{name}?operator={MARKUP}&operand={MARKUP}")
    assert visit.page.locator('img[src="x"]').count() == 0
    visit.check()


def test_labels_of_an_response_stay_text(visit: Visit, tmp_path: Path) -> None:
    picture = tmp_path / "row.png"
    picture.write_bytes(bright(0))
    visit.open("#/hostile/playground")
    visit.page.locator('input[type="file"]').first.set_input_files(picture)
    visit.page.get_by_text(LABEL).first.wait_for()
    assert visit.page.locator('img[src="x"]').count() == 0
    visit.check()


def test_the_bar_leads_to_every_page(visit: Visit) -> None:
    visit.open("#/digits/playground")
    for name, place in visit.pages().items():
        visit.page.locator("nav#tabs a", has_text=name).click()
        visit.settle()
        assert place in visit.page.url
    visit.check()
