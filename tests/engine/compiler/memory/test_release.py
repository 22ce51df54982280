"""Which pages of LLVM are given back."""

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from engine.compiler.memory import release
from engine.compiler.memory.release import (
    make_room_for_compiler,
    release_compiler_memory,
    unchanged_pages,
)

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
7f0000028000-7f000002c000 r--p 00000000 fe:00 6 /models/some.weights
Anonymous:             0 kB
Swap:                  0 kB
7f0000030000-7f0000034000 r--p 00000000 fe:00 9 /libllvmlite/other
Anonymous:             0 kB
Swap:                  0 kB
7f0000040000-7f0000044000 rw-p 00000000 00:00 0
Anonymous:             0 kB
Swap:                  0 kB
"""


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "maps"
    path.write_text(PLACES)
    monkeypatch.setattr(release, "_MAPS", path)
    return path


@pytest.mark.usefixtures("maps")
def test_only_pages_that_are_as_in_the_file_are_dropped() -> None:
    assert list(unchanged_pages("libllvmlite")) == [(0x7F0000000000, 0x3000), (0x7F0000003000, 0xD000)]


@pytest.mark.usefixtures("maps")
def test_all_libraries_are_meant_by_no_name_but_no_mapped_data() -> None:
    assert list(unchanged_pages("")) == [
        (0x7F0000000000, 0x3000),
        (0x7F0000003000, 0xD000),
        (0x7F0000020000, 0x4000),
    ]


def test_a_system_that_shows_no_number_has_nothing_dropped(maps: Path) -> None:
    maps.write_text(PLACES.replace("Anonymous", "Unknown"))
    assert list(unchanged_pages("libllvmlite")) == []


def test_names_of_files_may_be_any_bytes(maps: Path) -> None:
    maps.write_bytes(PLACES.encode().replace(b"libother.so", b"libg\xfcnther.so"))
    assert len(list(unchanged_pages(""))) == 3


def test_the_list_may_be_kept_from_us(maps: Path) -> None:
    maps.unlink()
    maps.mkdir()  # cannot be read
    assert list(unchanged_pages("")) == []


def test_llvm_works_after_its_pages_were_dropped() -> None:
    release_compiler_memory()
    make_room_for_compiler()
    assert "ret i32" in str(llvm.parse_assembly("define i32 @same(i32 %a) { ret i32 %a }"))
