"""What the first requests need, and a start does not: imported once the server is ready, so that none waits for it."""

from contextlib import suppress
from importlib import import_module

from engine import release_file_pages

_MODULES = (
    "anyio._backends._asyncio",
    "service.images.planes",
    "service.images.drawing",
    "service.telemetry.metrics.text",
)


def prepare_for_requests() -> None:
    """Import what decodes pictures, runs functions on threads and shows metrics; give back memory of the start."""
    for name in _MODULES:
        with suppress(ImportError):  # whoever needs it imports it again, and is told
            import_module(name)
    release_file_pages()
