"""What the console weighs: its first page, and all of them."""

from urllib.parse import urlsplit

from service.api.console import CONSOLE_FILES, MEDIA_TYPES
from tests.console.visit import Visit

FIRST_BYTES, FIRST_REQUESTS, ALL_BYTES = 120_000, 20, 400_000


def test_first_view_is_light(visit: Visit) -> None:
    sizes: list[int] = []
    visit.page.on("response", lambda response: sizes.append(len(response.body())))
    visit.page.goto(f"{visit.address}/console#/digits/playground")
    visit.settle()
    # samples in view have thumbnails: how many and how large is up to the model
    places = [
        urlsplit(url).path for url in visit.requests if "/samples/" not in url and not url.startswith("blob:")
    ]
    assert len(places) <= FIRST_REQUESTS, places
    assert sum(sizes) <= FIRST_BYTES


def test_all_pages_together_are_light() -> None:
    files = [path for path in CONSOLE_FILES.rglob("*") if path.suffix in MEDIA_TYPES]
    assert files
    assert sum(path.stat().st_size for path in files) <= ALL_BYTES
