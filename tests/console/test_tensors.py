"""An operand of a run, as the page shows it, beside what the engine gives for the same input."""

import io
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tests.console.visit import Visit

_PIXELS = """canvas => {
  const {width, height} = canvas;
  return {width, height, red: [...canvas.getContext("2d").getImageData(0, 0, width, height).data]
    .filter((_, place) => place % 4 === 0)};
}"""


def run_seven(visit: Visit, samples: Path, place: str) -> None:
    """Have the console run a seven, and open one of its pages."""
    visit.open("#/digits/playground")
    visit.page.locator("#picture-file").set_input_files(samples / "7.png")
    visit.page.locator(".top-label").first.wait_for()
    visit.page.evaluate("place => { location.hash = place; }", place)
    visit.settle()


def operand_of_seven(visit: Visit, samples: Path, name: str) -> Any:
    """Return what the server answers for an operand."""
    response = httpx.post(
        f"{visit.address}/infer?model=digits&capture={name}",
        content=(samples / "7.png").read_bytes(),
        headers={"Content-Type": "image/png", "Accept": "application/x-npz"},
        timeout=60,
    )
    with np.load(io.BytesIO(response.content)) as arrays:
        (key,) = [key for key in arrays.files if key.split(".")[-1].split("/")[-1] == name]
        return arrays[key]


def test_maps_are_those_of_the_run(visit: Visit, samples: Path) -> None:
    run_seven(visit, samples, "#/digits/tensors?operand=3")
    values = operand_of_seven(visit, samples, "3").reshape(16, 28, 28)
    tiles = visit.page.locator("canvas.tile")
    tiles.nth(15).wait_for()
    assert tiles.count() == 16
    grey = visit.page.get_by_label("Grey")
    if not grey.is_checked():
        grey.check()
    low, high = float(values.min()), float(values.max())
    for index in range(16):
        shown = visit.page.locator(f'canvas.tile[data-index="{index}"]').evaluate(_PIXELS)
        assert (shown["width"], shown["height"]) == (28, 28)
        wanted = (values[index] - low) / (high - low)
        found = np.array(shown["red"], float).reshape(28, 28) / 255
        assert np.abs(found - wanted).max() <= 1 / 255
    counts = visit.page.locator("[data-counts]").first.get_attribute("data-counts")
    numbers = counts.replace(",", " ").strip("[] ").split()
    assert sum(map(int, numbers)) == values.size == 12_544
    visit.page.locator(".pill").get_by_text("f32", exact=True).wait_for()
    visit.check()
