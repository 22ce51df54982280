"""The playground: what a model responses to pictures, drawings, arrays, files that are none, and the camera."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.console.visit import Visit
from tests.service.server.process import ROOT, ServerProcess

SCENES = ROOT / "models/digit-scenes"
_DROP = """
(target, [name, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name));
  target.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
}
"""
_OVERLAP = 0.5
"""Least part of their union that a box and the digit that was drawn share."""


def drop(visit: Visit, path: Path) -> None:
    """Drop a file on the page."""
    target = visit.page.locator("main")
    target.evaluate(_DROP, [path.name, list(path.read_bytes())])


def respond(visit: Visit) -> Any:
    return visit.page.locator(".top-label")


def test_a_dropped_picture_is_read(visit: Visit, samples: Path) -> None:
    visit.open("#/digits/playground")
    drop(visit, samples / "7.png")
    respond(visit).wait_for()
    assert respond(visit).inner_text() == "7"
    visit.check()


def test_a_prediction_is_explained(visit: Visit) -> None:
    visit.open("#/digits/playground")
    visit.page.get_by_role("button", name="Sample 3.png").click()
    visit.page.get_by_text("Why?", exact=True).click()
    for method in ("occlusion", "Score-CAM"):
        visit.page.get_by_label("Method").select_option(label=method)
        visit.page.get_by_role("button", name="Explain").click()
        picture = visit.page.get_by_alt_text("Where 3 comes from")
        picture.wait_for()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 280
        picture.evaluate("image => image.remove()")
    visit.check()


@pytest.mark.parametrize("digit", ["0", "3", "8"])
def test_samples_are_a_click_away(visit: Visit, digit: str) -> None:
    visit.open("#/digits/playground")
    visit.page.get_by_role("button", name=f"Sample {digit}.png").click()
    respond(visit).wait_for()
    assert respond(visit).inner_text() == digit
    visit.check()


def test_a_drawing_is_read(visit: Visit) -> None:
    visit.open("#/digits/playground?source=draw")
    canvas = visit.page.locator("canvas.drawing")
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None
    points = [(0.5, 0.15), (0.5, 0.5), (0.5, 0.85)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in points]
    visit.page.mouse.move(*places[0])
    visit.page.mouse.down()
    for place in places[1:]:
        visit.page.mouse.move(*place, steps=10)
    visit.page.mouse.up()
    respond(visit).wait_for()
    assert respond(visit).inner_text() == "1"
    visit.check()


def test_an_array_gives_what_the_same_array_gives_without_the_page(visit: Visit, tmp_path: Path) -> None:
    array = np.random.default_rng(1).random((1, 1, 28, 28), np.float32)
    np.save(tmp_path / "digit.npy", array)
    expected = visit.page.request.post(
        f"{visit.address}/infer?model=digits",
        data=(tmp_path / "digit.npy").read_bytes(),
        headers={"Content-Type": "application/x-npy"},
    ).json()["predictions"][0]
    visit.open("#/digits/playground")
    drop(visit, tmp_path / "digit.npy")
    respond(visit).wait_for()
    assert respond(visit).inner_text() == expected[0]["label"]
    assert visit.page.locator(".bar-name").all_inner_texts() == [found["label"] for found in expected]
    visit.check()


def test_a_bad_file_shows_the_sentence_of_the_server(visit: Visit, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    refused = visit.page.request.post(
        f"{visit.address}/infer?model=digits",
        data=(tmp_path / "broken.png").read_bytes(),
        headers={"Content-Type": "image/png"},
    ).json()
    visit.open("#/digits/playground")
    drop(visit, tmp_path / "broken.png")
    alert = visit.page.locator(".response [role=alert]")
    alert.wait_for()
    assert refused["error"] in alert.inner_text()
    assert refused["code"] in alert.inner_text()


def test_a_response_survives_a_reload(visit: Visit, samples: Path) -> None:
    visit.open("#/digits/playground")
    drop(visit, samples / "4.png")
    respond(visit).wait_for()
    visit.settle()
    visit.page.reload()
    respond(visit).wait_for()
    assert respond(visit).inner_text() == "4"


def test_the_camera_is_asked_again_and_again_and_ends_with_the_page(visit: Visit) -> None:
    visit.page.add_init_script("""
      window.tracks = [];
      const media = navigator.mediaDevices, ask = media.getUserMedia.bind(media);
      media.getUserMedia = async (wanted) => {
        const stream = await ask(wanted);
        window.tracks.push(...stream.getTracks());
        return stream;
      };
    """)
    visit.open("#/digits/playground?source=camera")
    visit.page.get_by_role("button", name="Start the camera").click()
    rate = visit.page.locator(".rate")
    rate.filter(has_text="responses a second").wait_for()
    assert respond(visit).inner_text() in "0123456789"
    assert visit.page.evaluate("window.tracks.map(track => track.readyState)") == ["live"]
    visit.page.locator("nav#tabs a", has_text="Graph").click()
    visit.page.locator("canvas.graph-canvas, .empty").first.wait_for()
    assert visit.page.evaluate("window.tracks.map(track => track.readyState)") == ["ended"]
    visit.check()


def shared(box: list[float], truth: list[float]) -> float:
    """Return the part of their union that two boxes share; left, top, right and bottom."""
    width = min(box[2], truth[2]) - max(box[0], truth[0])
    height = min(box[3], truth[3]) - max(box[1], truth[1])
    both = max(0.0, width) * max(0.0, height)
    areas = [(side[2] - side[0]) * (side[3] - side[1]) for side in (box, truth)]
    return both / (sum(areas) - both)


@pytest.mark.skipif(not SCENES.exists(), reason="the model digit-scenes is not there")
def test_boxes_lie_on_the_digits_that_were_drawn_and_are_filtered_without_a_request(visit: Visit) -> None:
    with ServerProcess("--models", str(SCENES), module="service") as server:
        visit.address = server.url
        visit.open("#/digit-scenes/playground")
        drop(visit, SCENES / "samples/0.png")
        visit.page.locator("canvas.picture").wait_for()
        visit.settle()
        visit.page.locator("summary", has_text="As a table").click()
        rows = [row.locator("td").all_inner_texts() for row in visit.page.locator("tbody tr").all()]
        boxes = [(row[0], [float(side) for side in row[2].split(",")]) for row in rows]
        for digit in json.loads((SCENES / "truth/0.json").read_text())["digits"]:
            best = max(
                (shared(box, digit["box"]) for label, box in boxes if label == digit["label"]), default=0.0
            )
            assert best >= _OVERLAP, digit
        asked = len(visit.requests)
        visit.page.locator("#threshold").fill("0.9")
        assert visit.page.locator("tbody tr").count() < len(rows)
        assert len(visit.requests) == asked
        visit.page.locator("summary", has_text="This request, to copy").click()
        copied = visit.page.locator(".code-box pre")
        assert "confidence=0.9" in copied.inner_text()
        visit.page.get_by_role("tab", name="Python").click()
        visit.page.locator("#threshold").fill("0.5")
        assert "confidence=0.5'" in copied.inner_text().replace('"', "'")
        visit.check()


@pytest.mark.skipif(not SCENES.exists(), reason="the model digit-scenes is not there")
def test_the_best_demonstration_opens_and_samples_are_no_ground_truth(visit: Visit) -> None:
    with ServerProcess("--models", str(SCENES.parent), module="service") as server:
        visit.address = server.url
        visit.open("#/")
        assert visit.page.url.endswith("#/digits/playground")
        for name in ("digit-scenes", "digit-masks"):
            listed = visit.page.request.get(f"{server.url}/models/{name}/samples").json()["samples"]
            assert {one["media_type"] for one in listed} == {"image/png"}
            visit.page.get_by_label("Model").select_option(name)
            buttons = visit.page.get_by_role("button", name="Sample ")
            buttons.first.wait_for()
            assert all(
                title[: -len(".png")].isdigit()
                for title in buttons.evaluate_all("all => all.map(one => one.title)")
            )
        visit.check()


def test_back_undoes_a_step_inside_the_console(visit: Visit) -> None:
    visit.open("#/digits/playground")
    visit.page.get_by_role("tab", name="Draw").click()
    visit.page.locator("canvas.drawing").wait_for()
    visit.page.go_back()
    visit.page.get_by_text("Drop a picture here").wait_for()
    assert visit.page.url.endswith("#/digits/playground")
    visit.open("#/large/graph")
    visit.page.locator("canvas.graph-canvas").wait_for()
    visit.page.get_by_role("button", name="All closed").click()
    visit.page.locator("button[aria-pressed=true]", has_text="All closed").wait_for()
    visit.page.go_back()
    visit.page.locator("button[aria-pressed=true]", has_text="As needed").wait_for()
    visit.page.go_back()
    visit.page.get_by_text("Drop a picture here").or_(visit.page.get_by_text("Choose a file")).or_(
        visit.page.locator(".response")
    ).first.wait_for()
    visit.check()


def test_samples_have_thumbnails_before_anything_is_clicked(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    visit.open("#/digits/playground")
    visit.page.get_by_role("button", name="Sample 0.png").locator("img").wait_for()
    visit.check()


def rows_of_the_table(response: Any) -> set[int]:
    """Return which ids the model `words` was given."""
    return {int(row[0]) // 4 for row in response["outputs"][0]["data"][0]}


def test_a_raw_model_shows_its_tensors_and_random_ids_are_rows_of_the_table(visit: Visit) -> None:
    visit.open("#/words/playground")
    with visit.page.expect_response("**/infer**") as asked:
        visit.page.get_by_role("button", name="Run", exact=True).click()
    assert rows_of_the_table(asked.value.json()) == {0, 1, 2}
    visit.page.get_by_role("columnheader", name="Row").wait_for()
    visit.check()


def test_a_model_without_samples_runs_an_input_that_is_made_up(visit: Visit) -> None:
    visit.open("#/words/graph")
    with visit.page.expect_response("**/infer**") as asked:
        visit.page.get_by_role("button", name="Run a sample").click()
    assert rows_of_the_table(asked.value.json()) == {0, 1, 2}
    visit.page.locator("canvas.graph-canvas[data-hottest=table]").wait_for()
    visit.check()
