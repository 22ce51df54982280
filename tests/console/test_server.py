"""The page of the server: what it counts, and when it asks."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.console.visit import Visit

REQUESTS = 100


def test_counter_follows_requests(visit: Visit, samples: Path) -> None:
    visit.open("#/digits/server")
    counter = visit.page.locator("[data-requests]").first
    counter.wait_for()
    before = int(counter.get_attribute("data-requests") or 0)
    picture = (samples / "7.png").read_bytes()

    def ask(_: int) -> int:
        headers = {"Content-Type": "image/png"}
        return httpx.post(
            f"{visit.address}/infer?model=digits", content=picture, headers=headers, timeout=60
        ).status_code

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(ask, range(REQUESTS))) == {200}
    visit.page.locator(f'[data-requests="{before + REQUESTS}"]').first.wait_for()
    visit.check()


def test_a_hidden_page_asks_nothing(visit: Visit) -> None:
    visit.page.clock.install()
    visit.open("#/digits/server")
    visit.page.locator("[data-requests]").first.wait_for()
    visit.page.evaluate(
        """() => {
          Object.defineProperty(document, "visibilityState", {value: "hidden", configurable: true});
          Object.defineProperty(document, "hidden", {value: true, configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    visit.page.wait_for_load_state("networkidle")
    asked = len(visit.requests)
    visit.page.clock.run_for(5_000)
    visit.page.wait_for_load_state("networkidle")
    assert len(visit.requests) == asked
