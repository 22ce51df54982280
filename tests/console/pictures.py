"""Takes the README's pictures of the console: `python -m tests.console.pictures`, where Chromium and playwright are.

docs/assets/console-playground.png  a scene in the playground, with what was found in it
docs/assets/console-graph.png       the graph of the same model, coloured by the time of that run
"""

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.console.conftest import NAMES
from tests.service.server.process import ROOT, ServerProcess

if TYPE_CHECKING:
    from playwright.sync_api import Page

MODEL = "digit-scenes"
ASSETS = ROOT / "docs/assets"
MAX_BYTES = 300_000
RUNS = 12
"""Maximum runs that are tried: other programs may have had the processor during one."""
VIEW = {"width": 1280, "height": 860}


def take_playground(page: "Page", target: Path) -> None:
    """Take the picture of a scene with boxes on its digits, of the fastest of some runs."""
    taken: list[float] = []
    for _ in range(RUNS):
        with page.expect_response(lambda response: "/infer" in response.url) as waited:
            page.set_input_files("#picture-file", str(ROOT / "models" / MODEL / "samples/0.png"))
        request = waited.value.headers["x-request-id"]
        page.locator(f'.links a[href*="{request}"]').first.wait_for()
        text = page.locator(".response > .between .number").inner_text()
        taken.append(float(text.split("·")[1].split()[0]))
        if taken[-1] <= min(taken) and len(taken) > RUNS // 2:
            break
    page.locator("#threshold").fill("0.5")
    page.mouse.move(640, 5)  # pictures of the samples come when the mouse moves
    page.locator(".sample img").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=target)


def take_graph(page: "Page", target: Path) -> None:
    """Take the picture of the graph, at the operator that took longest."""
    page.get_by_role("link", name="in the graph").click()
    canvas = page.locator("canvas.graph-canvas")
    canvas.wait_for()
    search = page.get_by_label("Find")
    search.fill(canvas.get_attribute("data-hottest") or "")
    search.press("Enter")
    search.fill("")
    page.locator("section[aria-label=Operator] .histogram").first.wait_for()
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.screenshot(path=target)


def main() -> None:
    """Take both pictures.

    Raises:
        SystemExit: no browser is installed, or a picture is too large for a README.
    """
    from playwright.sync_api import sync_playwright

    executable = next((path for path in map(shutil.which, NAMES) if path), None)
    if executable is None:
        raise SystemExit(f"no browser is installed; looked for {', '.join(NAMES)}")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    models = str(ROOT / "models" / MODEL)
    with (
        ServerProcess("--models", models, module="service") as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=executable, args=arguments)
        page = browser.new_page(viewport=VIEW, color_scheme="light")
        page.goto(f"{server.url}/console#/{MODEL}/playground")
        page.locator("#picture-file").wait_for(state="attached")
        for name, take in (("playground", take_playground), ("graph", take_graph)):
            target = ASSETS / f"console-{name}.png"
            take(page, target)
            if target.stat().st_size > MAX_BYTES:
                raise SystemExit(f"{target} has {target.stat().st_size} bytes; expected at most {MAX_BYTES}")
            sys.stdout.write(f"{target.relative_to(ROOT)}\n")
        browser.close()


if __name__ == "__main__":
    main()
