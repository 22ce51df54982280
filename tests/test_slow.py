"""Which tests `make test` leaves out, and what becomes of one that takes long and is not listed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SLOW

ROOT = Path(__file__).parents[1]


def run_pytest(folder: Path, text: str, *flags: str) -> str:
    """Run one file of tests with the project's conftest; returns what pytest printed."""
    (folder / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *flags,
        str(folder),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("place", SLOW)
def test_what_is_listed_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8")


def test_a_test_that_takes_long_fails_unless_it_is_marked(tmp_path: Path) -> None:
    printed = run_pytest(
        tmp_path,
        "import pytest\n"
        "def test_quick(): pass\n"
        "def test_long(): sum(range(10_000_000))\n"
        "@pytest.mark.slow(reason='it is')\n"
        "def test_marked(): sum(range(10_000_000))\n",
        "--limit=0.05",
    )
    assert "1 failed, 2 passed" in printed, printed
    assert "the limit is 0.05 s" in printed, printed
