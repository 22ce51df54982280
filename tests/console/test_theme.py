"""The switch of the theme: as the system, light, or dark."""

import pytest

from tests.console.visit import Visit

_COLOURS = """() => {
  const style = getComputedStyle(document.body);
  return [style.backgroundColor, style.color, getComputedStyle(document.documentElement).colorScheme];
}"""


def colours(visit: Visit, chosen: str) -> list[str]:
    """Return the colours of the page once a theme is chosen."""
    switch = visit.page.locator('button[aria-label^="Theme: "]')
    wanted = f"Theme: {chosen}"
    for _ in range(3):
        if switch.get_attribute("aria-label") == wanted:
            break
        switch.click()
    assert switch.get_attribute("aria-label") == wanted
    found: list[str] = visit.page.evaluate(_COLOURS)
    return found


@pytest.mark.parametrize("system", ["light", "dark"])
def test_what_is_chosen_counts_and_not_the_system(visit: Visit, system: str) -> None:
    other = {"light": "dark", "dark": "light"}[system]
    visit.page.emulate_media(color_scheme=system)
    visit.open("#/digits/playground")
    as_system = colours(visit, "as the system")
    assert as_system[2] == system
    assert colours(visit, system) == as_system
    as_other = colours(visit, other)
    assert as_other[2] == other
    assert not set(as_other) & set(as_system)
    visit.page.emulate_media(color_scheme=other)
    assert colours(visit, "as the system") == as_other
    assert colours(visit, system) == as_system
    visit.page.reload()
    assert colours(visit, system) == as_system
    visit.check()
