"""Which pages of LLVM are given back."""

import mmap
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from engine.compiler.memory import release
from engine.compiler.memory.release import (
    make_room_for_compiler,
    release_compiler_memory,
    release_file_pages,
    unchanged_pages,
)

SMAPS = Path("/proc/self/smaps")
PLACES = """\
7f0000000000-7f0000003000 r--p 00000000 fe:00 7 /lib/libllvmlite.so
Rss:                  12 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd mr mw me
7f0000003000-7f0000010000 r-xp 00003000 fe:00 7 /lib/libllvmlite.so
Rss:                  52 kB
Anonymous:             0 kB
Swap:                  0 kB
7f0000010000-7f0000012000 r--p 00010000 fe:00 7 /lib/libllvmlite.so
Anonymous:             4 kB
Swap:                  0 kB
7f0000012000-7f0000014000 r--p 00012000 fe:00 7 /lib/libllvmlite.so
Anonymous:             0 kB
Swap:                  4 kB
7f0000014000-7f0000016000 rw-p 00014000 fe:00 7 /lib/libllvmlite.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000020000-7f0000024000 r--p 00000000 fe:00 8 /lib/libother.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000024000-7f0000025000 rw-p 00004000 fe:00 8 /lib/libother.so
Anonymous:             4 kB
Swap:                  0 kB
7f0000028000-7f000002c000 r--p 00000000 fe:00 6 /lib/libcoming.so
Anonymous:             0 kB
Swap:                  0 kB
7f0000030000-7f0000034000 r--p 00000000 fe:00 9 /libllvmlite/other
Anonymous:             0 kB
Swap:                  0 kB
7f0000040000-7f0000044000 rw-p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
"""


def test_only_pages_that_are_as_in_the_file_are_dropped() -> None:
    assert list(unchanged_pages(PLACES, "libllvmlite")) == [
        (0x7F0000000000, 0x3000),
        (0x7F0000003000, 0xD000),
    ]


def test_all_libraries_that_are_loaded_are_meant_by_no_name() -> None:
    assert list(unchanged_pages(PLACES, "")) == [
        (0x7F0000000000, 0x3000),
        (0x7F0000003000, 0xD000),
        (0x7F0000020000, 0x4000),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not show what is mapped")
def test_files_that_are_mapped_for_their_data_are_left_alone(tmp_path: Path) -> None:
    """They are unmapped while others run, and what these allocate may lie there by then."""
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ) as mapped:
        first = np.frombuffer(mapped, np.uint8).ctypes.data
        pages = list(unchanged_pages(SMAPS.read_text(), ""))
    assert pages
    assert not [start for start, size in pages if start <= first < start + size]


def test_a_system_that_shows_no_number_has_nothing_dropped() -> None:
    reported = PLACES.replace("Anonymous", "Unknown")
    assert list(unchanged_pages(reported, "libllvmlite")) == []


@pytest.mark.parametrize("name", [b"libg\xfcnther.so", None])
def test_names_of_files_may_be_any_bytes_and_the_list_may_be_kept_from_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes | None
) -> None:
    maps = tmp_path / "maps"
    if name is None:
        maps.mkdir()  # cannot be read
    else:
        maps.write_bytes(PLACES.encode().replace(b"libother.so", name))
    monkeypatch.setattr(release, "_MAPS", maps)
    dropped: list[tuple[int, int]] = []
    monkeypatch.setattr(release, "_drop", dropped.extend)
    release_file_pages()
    assert len(dropped) == (0 if name is None else 3)


def test_llvm_works_after_its_pages_were_dropped() -> None:
    release_compiler_memory()
    make_room_for_compiler()
    assert "ret i32" in str(llvm.parse_assembly("define i32 @same(i32 %a) { ret i32 %a }"))
