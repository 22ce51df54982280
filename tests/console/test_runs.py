"""One run on several pages: the graph's colours, the timeline's bars, and comparisons are those of the API."""

import json
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.console.visit import Visit
from tests.service.server.process import ROOT

_PIXEL = 1.0


def run(visit: Visit) -> dict[str, Any]:
    """Run the digits once; returns the response."""
    response: dict[str, Any] = visit.page.request.post(
        f"{visit.address}/infer?model=digits",
        data=(ROOT / "models/digits/samples/7.png").read_bytes(),
        headers={"Content-Type": "image/png"},
    ).json()
    return response


def test_the_hottest_node_is_the_slowest_layer_of_the_run(visit: Visit) -> None:
    response = run(visit)
    layers = response["trace"]["layers"]
    assert sum(layer["share"] for layer in layers) == pytest.approx(1.0, abs=0.01)
    visit.open(f"#/digits/graph?run={response['request_id']}")
    canvas = visit.page.locator("canvas.graph-canvas")
    canvas.wait_for()
    slowest = max(layers, key=lambda layer: layer["duration_ms"])["name"]
    assert canvas.get_attribute("data-hottest") == slowest
    assert "all in native kernels" in visit.page.locator(".head").inner_text()
    cells = visit.page.locator("section[aria-label], section.card").locator("tbody tr").first.locator("td")
    assert cells.first.inner_text() == slowest
    visit.check()


def test_a_run_that_the_server_keeps_no_longer_is_not_another_one(visit: Visit) -> None:
    run(visit)
    visit.open("#/digits/graph?run=forgotten")
    visit.page.get_by_text("This run is no longer kept").wait_for()
    visit.page.get_by_role("button", name="Run a sample").click()
    visit.page.wait_for_url(lambda url: "forgotten" not in url)
    visit.check()


def test_shares_in_the_table_sum_to_one_hundred(visit: Visit) -> None:
    visit.open(f"#/digits/graph?run={run(visit)['request_id']}")
    visit.page.locator("canvas.graph-canvas").wait_for()
    texts = visit.page.locator("tbody tr td:nth-child(4)").all_inner_texts()
    # each is rounded to a tenth, those above ten to a whole
    assert sum(float(text.removesuffix(" %")) for text in texts) == pytest.approx(100, abs=3)


def test_bars_of_the_timeline_are_those_of_the_trace(visit: Visit) -> None:
    request = run(visit)["request_id"]
    chrome = visit.page.request.get(f"{visit.address}/traces/{request}?format=chrome").json()["traceEvents"]
    events = {
        event["args"]["name"]: event for event in chrome if event.get("cat") == "layer" and event["dur"] > 0
    }
    detail = visit.page.request.get(f"{visit.address}/traces/{request}").json()
    visit.open(f"#/digits/timeline?run={request}")
    canvas = visit.page.locator("canvas.flame")
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None
    pixels = box["width"] / detail["total_ms"]
    bars = {
        bar.get_attribute("data-name"): (
            float(bar.get_attribute("data-start") or ""),
            float(bar.get_attribute("data-duration") or ""),
        )
        for bar in visit.page.locator("button[data-start]").all()
    }
    for name, event in events.items():
        if name not in bars:  # fused into another one
            continue
        start, duration = bars[name]
        assert abs(start - event["ts"] / 1000) * pixels <= _PIXEL, name
        assert abs(duration - event["dur"] / 1000) * pixels <= _PIXEL, name
    stamps = detail["stamps"]
    assert bars["Decode"][0] == pytest.approx(stamps["decode_start_ms"])
    assert bars["Run"][0] == pytest.approx(stamps["forward_start_ms"])
    assert len(set(events) & set(bars)) > 5
    visit.check()


def test_an_operator_is_found_chosen_and_described(visit: Visit) -> None:
    visit.open(f"#/digits/graph?run={run(visit)['request_id']}")
    search = visit.page.get_by_label("Find")
    search.fill("stem.conv")
    search.press("Enter")
    panel = visit.page.locator("section[aria-label=Operator]")
    panel.get_by_text("weight", exact=True).wait_for()
    assert panel.locator("h2").inner_text() == "stem.conv"
    assert re.search(r"16 . 1 . 3 . 3 f32", panel.inner_text())
    assert re.search(r"node=stem\.conv", visit.page.url)
    visit.check()


def test_the_first_operator_that_diverges_is_that_of_the_api(visit: Visit) -> None:
    found = visit.page.request.post(
        f"{visit.address}/compare?model=digits&with_precision=bf16",
        data=(ROOT / "models/digits/samples/0.png").read_bytes(),
        headers={"Content-Type": "image/png"},
    ).json()
    visit.open("#/digits/compare?with=with_precision%3Dbf16")
    visit.page.locator(".compare-graph canvas").wait_for()
    marked = visit.page.locator("#first-diverging")
    assert (marked.inner_text() if marked.count() else None) == found["first"]
    visit.check()


def test_a_reference_that_differs_is_marked_where_check_marks_it(visit: Visit, tmp_path: Path) -> None:
    reference = tmp_path / "reference.npz"
    wrong_reference(visit, reference, "3")
    found = first_by_check(reference)
    assert found == "stem.conv"
    visit.open("#/digits/compare")
    visit.page.get_by_label("digits with").select_option("reference")
    visit.page.locator("#reference").set_input_files(str(reference))
    visit.page.get_by_role("button", name="Compare", exact=True).click()
    marked = visit.page.locator("#first-diverging")
    marked.wait_for()
    assert marked.inner_text() == found
    visit.check()


def first_by_check(reference: Path) -> str:
    """Return the first operator that `kuiper check --layers` finds to differ."""
    command = [
        sys.executable,
        "-m",
        "service.cli",
        "check",
        "models/digits",
        "--layers",
        str(reference),
        "--json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    lines = "\n".join(json.loads(done.stdout)["comparison"])
    found = re.search(r"^first divergence +\S+ (.+), operand", lines, re.MULTILINE)
    assert found, lines
    return found[1]


def wrong_reference(visit: Visit, path: Path, operand: str) -> None:
    """Write the operands of a run with one of them wrong."""
    body = visit.page.request.post(
        f"{visit.address}/infer?model=digits&capture=0,2,{operand},31&trace=off",
        data=(ROOT / "models/digits/samples/0.png").read_bytes(),
        headers={"Content-Type": "image/png", "Accept": "application/x-npz"},
    ).body()
    with np.load(BytesIO(body)) as response:
        arrays = {
            name.removeprefix("captured/"): response[name]
            for name in response.files
            if name.startswith("capt")
        }
    arrays[operand] = arrays[operand] + 1
    np.savez(path, **{name: arrays[name] for name in ("0", "2", operand)})


def test_a_graph_opened_by_its_numerical_difference_asks_for_it(visit: Visit) -> None:
    visit.open("#/digits/graph?measure=loss")
    visit.page.locator("canvas.graph-canvas").wait_for()
    visit.settle()
    assert any("/compare?" in url for url in visit.requests)
    assert visit.page.locator("canvas.graph-canvas").get_attribute("data-hottest")
    visit.check()


def test_a_run_takes_the_same_times_in_the_same_colours_on_all_pages(visit: Visit, samples: Path) -> None:
    visit.open("#/digits/playground")
    visit.page.locator("#picture-file").set_input_files(samples / "7.png")
    legend = visit.page.locator(".legend li", has_text="Encode")
    legend.wait_for()
    taken = legend.locator(".stage-time").inner_text()
    colour = legend.locator(".swatch").evaluate("one => getComputedStyle(one).backgroundColor")
    visit.page.get_by_role("link", name="on a timeline").click()
    row = visit.page.locator("tbody tr", has_text="Encode")
    row.wait_for()
    assert taken in row.inner_text()
    painted = """([colour]) => {
      const canvas = document.querySelector("main canvas");
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const wanted = colour.match(/\\d+/g).map(Number);
      return data.some((_, at) => at % 4 === 0 && wanted.every((value, index) => data[at + index] === value));
    }"""
    assert visit.page.evaluate(painted, [colour])
    visit.check()


def test_numerical_differences_colour_the_operators_that_are_compared(visit: Visit) -> None:
    visit.open("#/digits/graph?measure=loss")
    visit.page.locator("canvas.graph-canvas:not([data-hottest=''])").wait_for()
    with visit.page.expect_download() as waited:
        visit.page.get_by_role("button", name="Download as SVG").click()
    drawn = waited.value.path().read_text()
    box = drawn[drawn.index("<title>stem.conv\n") :]
    assert 'fill="rgb(' in box[: box.index("</g>")]
    visit.check()
