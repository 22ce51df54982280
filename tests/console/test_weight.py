"""What the console weighs."""

from service.routes.console import CONSOLE_FILES, MEDIA_TYPES

ALL_BYTES = 400_000


def test_all_pages_together_are_light() -> None:
    files = [path for path in CONSOLE_FILES.rglob("*") if path.suffix in MEDIA_TYPES]
    assert files
    assert sum(path.stat().st_size for path in files) <= ALL_BYTES
