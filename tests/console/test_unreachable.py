"""What the pages say where the server does not answer."""

from pathlib import Path

from tests.console.visit import Visit


def test_no_line_says_that_the_server_has_responded(visit: Visit, samples: Path) -> None:
    visit.open("#/digits/playground")
    visit.page.route("**/infer?*", lambda route: route.abort())
    visit.page.locator("#picture-file").set_input_files(samples / "7.png")
    response = visit.page.locator(".response")
    response.get_by_text("The server cannot be reached.").wait_for()
    assert "own response" not in response.inner_text()


def test_a_page_that_cannot_be_loaded_says_so_and_can_be_tried_again(visit: Visit) -> None:
    visit.open("#/digits/playground")
    visit.page.route("**/views/graph/page.js", lambda route: route.abort())
    visit.page.evaluate("location.hash = '#/digits/graph'")
    visit.page.get_by_text("The page cannot be loaded.").wait_for()
    visit.page.unroute("**/views/graph/page.js")
    visit.page.get_by_role("button", name="Try again").click()
    visit.page.locator("canvas.graph-canvas").wait_for()
