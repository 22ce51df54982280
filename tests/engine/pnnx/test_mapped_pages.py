"""Memory of mapped files that is given back, and read again where it is needed."""

import mmap
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from engine.compiler.memory.release import release_file_pages
from engine.pnnx.mapped_pages import map_file, release_pages

BYTES = 1 << 20


def resident_kilobytes(address: int) -> int:
    """Return how much of what is mapped at an address lies in memory."""
    maps = Path("/proc/self/smaps").read_text("utf-8", "backslashreplace")
    found = re.search(rf"^0*{address:x}-.*\n(?:[A-Z].*\n)*?Rss: +(\d+) kB$", maps, re.MULTILINE)
    assert found is not None
    return int(found[1])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show what is mapped")
def test_mapped_files_are_given_back_and_read_again(tmp_path: Path) -> None:
    content = np.random.default_rng(0).bytes(BYTES)
    (tmp_path / "one").write_bytes(content)
    (tmp_path / "two").write_bytes(content)
    with (tmp_path / "one").open("rb") as file, (tmp_path / "two").open("rb") as other:
        kept, gone = map_file(file), map_file(other)
    array = np.frombuffer(kept, np.uint8)
    assert bytes(gone) == array.tobytes() == content
    assert resident_kilobytes(array.ctypes.data) == BYTES >> 10
    del gone
    release_file_pages()
    assert resident_kilobytes(array.ctypes.data) == 0
    assert array.tobytes() == content


def test_memory_without_a_file_keeps_what_it_holds() -> None:
    array = np.frombuffer(mmap.mmap(-1, BYTES), np.uint8)
    array[...] = 7
    release_pages(array)
    assert (array == 7).all()
