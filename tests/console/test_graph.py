"""Large graphs."""

import json
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image

from tests.console.visit import Visit


def test_a_large_graph_is_drawn_with_its_modules_closed(visit: Visit) -> None:
    visit.open("#/large/graph")
    visit.page.locator("canvas.graph-canvas").wait_for()
    drawn: Any = visit.page.request.get(f"{visit.address}/graph?model=large&format=layout").json()
    assert 10 <= len(drawn["nodes"]) <= 150
    assert sum(len(node["operators"]) for node in drawn["nodes"]) == drawn["operator_count"]
    visit.check()


def test_a_large_graph_is_drawn_open(visit: Visit) -> None:
    visit.open("#/large/graph?collapse=none")
    visit.page.locator("canvas.graph-canvas").wait_for()
    drawn: Any = visit.page.request.get(
        f"{visit.address}/graph?model=large&format=layout&collapse=none"
    ).json()
    assert len(drawn["nodes"]) == drawn["operator_count"] >= 1490
    visit.check()


def view_of(visit: Visit) -> tuple[float, float, float]:
    """Return where the drawing's corner is on the canvas, and its scale, after it was drawn."""
    visit.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    x, y, scale = json.loads(visit.page.locator("canvas.graph-canvas").get_attribute("data-view") or "")
    return x, y, scale


def layout_of(visit: Visit, model: str, collapse: str) -> Any:
    query = f"model={model}&format=layout&collapse={collapse}"
    return visit.page.request.get(f"{visit.address}/graph?{query}").json()


def test_a_graph_is_placed_by_the_size_that_it_has_once_the_styles_have_arrived(visit: Visit) -> None:
    visit.open("#/digits/graph")
    usual = view_of(visit)
    held: list[Any] = []
    visit.page.route("**/style/graph.css", lambda route: held.append(route))  # noqa: PLW0108  # needs attributes
    with visit.page.expect_response("**/graph?*"):
        visit.page.reload(wait_until="commit")
    visit.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
    held[0].continue_()
    visit.settle()
    assert view_of(visit) == usual
    visit.check()


def test_fit_shows_all_of_a_large_graph_with_landmarks_that_can_be_read(visit: Visit) -> None:
    visit.open("#/large/graph?collapse=none")
    canvas = visit.page.locator("canvas.graph-canvas")
    visit.page.get_by_role("button", name="Fit").click()
    _, y, scale = view_of(visit)
    size = canvas.bounding_box()
    assert size is not None
    assert 0 <= y < y + layout_of(visit, "large", "none")["height"] * scale <= size["height"]
    landmarks = json.loads(canvas.get_attribute("data-landmarks") or "[]")
    assert len(landmarks) >= 10
    assert all(name.startswith("layers.") for name, *_ in landmarks)
    places = sorted(place for _, place, _ in landmarks)
    assert min(below - above for above, below in pairwise(places)) >= 15
    visit.check()


def fitted_after_a_run(visit: Visit, width: int, height: int) -> Any:
    """Run a sample, fit its graph into a window of this size, and return the canvas."""
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.open("#/digits/graph")
    visit.page.get_by_role("button", name="Run a sample").click()
    canvas = visit.page.locator("canvas.graph-canvas:not([data-hottest=''])")
    canvas.wait_for()
    visit.page.get_by_role("button", name="Fit").click()
    view_of(visit)
    return canvas


def test_fit_names_the_operators_that_took_longest(visit: Visit) -> None:
    canvas = fitted_after_a_run(visit, 1280, 500)
    landmarks = [name for name, *_ in json.loads(canvas.get_attribute("data-landmarks") or "[]")]
    hottest = canvas.get_attribute("data-hottest")
    assert landmarks[0].startswith(f"{hottest} · ")
    assert {"stem", "block1", "block2"} <= set(landmarks)


def test_a_fused_operator_is_a_line_of_its_host_also_in_downloads(visit: Visit) -> None:
    visit.open("#/digits/graph")
    visit.page.get_by_role("button", name="Run a sample").click()
    visit.page.locator("canvas.graph-canvas:not([data-hottest=''])").wait_for()
    with visit.page.expect_download() as waited:
        visit.page.get_by_role("button", name="Download as SVG").click()
    drawn = waited.value.path().read_text()
    assert "<title>stem.conv\nnn.Conv2d</title>" in drawn
    assert ">+ stem.relu</text>" in drawn
    assert "<title>stem.relu" not in drawn
    with visit.page.expect_download() as waited:
        visit.page.get_by_role("button", name="Download as PNG").click()
    assert waited.value.suggested_filename == "digits-graph.png"
    with Image.open(waited.value.path()) as picture:
        assert picture.height > 1000
    visit.page.get_by_label("Find").fill("stem.relu")
    visit.page.get_by_label("Find").press("Enter")
    visit.page.get_by_text("Computed as part of").wait_for()
    visit.check()


def test_a_chosen_operator_is_in_the_middle(visit: Visit) -> None:
    visit.open("#/large/graph?collapse=none")
    canvas = visit.page.locator("canvas.graph-canvas")
    name = "layers.3.4.act1"
    visit.page.get_by_label("Find").fill(name)
    visit.page.get_by_label("Find").press("Enter")
    x, y, scale = view_of(visit)
    node = next(node for node in layout_of(visit, "large", "none")["nodes"] if node["id"] == name)
    size = canvas.bounding_box()
    assert size is not None
    assert x + (node["x"] + node["width"] / 2) * scale == pytest.approx(size["width"] / 2, abs=2)
    assert y + (node["y"] + node["height"] / 2) * scale == pytest.approx(size["height"] / 2, abs=2)


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1024, 768), (390, 844)])
def test_the_graph_is_on_the_first_screen_and_can_be_read_without_a_run(
    visit: Visit, width: int, height: int
) -> None:
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.open("#/digits/graph")
    frame = visit.page.locator("canvas.graph-canvas").bounding_box()
    assert frame is not None
    assert frame["y"] < height / 2
    assert view_of(visit)[2] >= 0.75
    if width > 1000:
        tools = visit.page.locator(".graph-tools > *").all()
        assert_in_a_row(tools)
        assert_in_a_row(visit.page.locator("header :is(a, select, button)").all())


def assert_in_a_row(elements: list[Any]) -> None:
    boxes = [box for box in (element.bounding_box() for element in elements) if box]
    assert max(box["y"] for box in boxes) < min(box["y"] + box["height"] for box in boxes)


def test_a_header_with_a_long_name_is_one_row(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 1024, "height": 768})
    visit.open("#/digits/graph")
    visit.page.locator("#pickers option").first.evaluate(
        "each => each.textContent = 'a-model-of-a-long-name'"
    )
    assert_in_a_row(visit.page.locator("header :is(a, select, button)").all())
    assert visit.page.locator("#tabs").evaluate("tabs => tabs.scrollWidth <= tabs.clientWidth")


def test_names_beside_a_narrow_graph_cover_neither_it_nor_the_buttons(visit: Visit) -> None:
    canvas = fitted_after_a_run(visit, 390, 844)
    landmarks = json.loads(canvas.get_attribute("data-landmarks") or "[]")
    assert len(landmarks) > 5
    assert all(gap >= 0 and y >= 48 for _, y, gap in landmarks)


def test_filters_of_a_convolution_are_pictures_beside_their_histogram(visit: Visit) -> None:
    visit.open("#/digits/graph?node=stem.conv")
    panel = visit.page.get_by_role("region", name="Operator")
    panel.locator(".histogram").first.wait_for()
    pictures = panel.get_by_role("img", name="Filter ")
    shown = pictures.evaluate_all("""all => all.map(one =>
      [...one.getContext("2d").getImageData(0, 0, one.width, one.height).data].filter((_, at) => at % 4 === 0))""")
    operator = visit.page.request.get(f"{visit.address}/graph/operators/stem.conv?model=digits").json()
    weight = next(found for found in operator["attributes"] if found["name"] == "weight")
    assert len(shown) == len(weight["filters"]) == weight["shape"][0]
    flat = [value for plane in weight["filters"] for row in plane for value in row]
    reds = [red for plane in shown for red in plane]
    assert weight["min"] <= min(flat) < max(flat) <= weight["max"]
    assert reds[flat.index(max(flat))] > reds[flat.index(min(flat))] + 50
    visit.check()
