import os
import struct
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ArchiveError
from engine.pnnx import archive
from engine.pnnx import zip_records as zr
from engine.pnnx.archive import ALIGNMENT, read_archive
from tests.engine.pnnx.zip_builder import Member, build, build_zip64, zip64_member

ENTRIES = {"a.weight": b"12345678", "a.bias": b"", "ü": b"x" * 100}
MEMBERS = [Member(name, data) for name, data in ENTRIES.items()]


def read_bytes(folder: Path, content: bytes) -> dict[str, bytes]:
    path = folder / "model.bin"
    path.write_bytes(content)
    return {name: bytes(data) for name, data in read_archive(path).items()}


def test_a_classic_archive_is_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, build(MEMBERS)) == ENTRIES


def test_a_zip64_archive_is_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, build_zip64(MEMBERS)) == ENTRIES


def test_sizes_and_offsets_in_zip64_fields_are_read(tmp_path: Path) -> None:
    first = zip64_member("a", b"12345", 0)
    second = zip64_member("b", b"678", 30 + 1 + 28 + 5)
    assert read_bytes(tmp_path, build_zip64([first, second])) == {"a": b"12345", "b": b"678"}


def test_other_extra_fields_are_skipped(tmp_path: Path) -> None:
    padding = struct.pack("<2H", zr.ALIGNMENT_EXTRA, 5) + b"12345"
    wide = zip64_member("a", b"12345", 0)
    padded = Member(
        "a", b"12345", wide.central, wide.local, padding + wide.central_extra, padding + wide.local_extra
    )
    assert read_bytes(tmp_path, build([padded, Member("b", b"", local_extra=b"\0\0")])) == {
        "a": b"12345",
        "b": b"",
    }


def test_an_archive_without_entries_is_read(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, build([])) == {}
    assert read_bytes(tmp_path, build_zip64([])) == {}


def test_an_archive_comment_is_skipped(tmp_path: Path) -> None:
    misleading = zr.END_RECORD.pack(zr.END_SIGNATURE, 0, 0, 0, 0, 0, 0, 0)
    assert read_bytes(tmp_path, build(MEMBERS, comment=misleading + b"..")) == ENTRIES
    assert read_bytes(tmp_path, build(MEMBERS, comment=b"c" * 0xFFFF)) == ENTRIES


@pytest.mark.parametrize("descriptor", [b"", bytes(12), bytes(16), bytes(20), bytes(24)])
def test_sizes_may_follow_the_data(tmp_path: Path, descriptor: bytes) -> None:
    flag = {"flags": zr.DESCRIPTOR_FLAG}
    later = Member("a", b"12345", flag, flag | {"size": 0, "packed": 0, "checksum": 0}, after=descriptor)
    assert read_bytes(tmp_path, build([later, Member("b", b"1")])) == {"a": b"12345", "b": b"1"}


def test_what_follows_the_data_must_be_a_descriptor(tmp_path: Path) -> None:
    flag = {"flags": zr.DESCRIPTOR_FLAG}
    with pytest.raises(ArchiveError, match="13 bytes before the entry belong to no entry"):
        read_bytes(tmp_path, build([Member("a", b"1", flag, flag, after=bytes(13)), Member("b", b"1")]))


def test_an_archive_that_python_made_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    with zipfile.ZipFile(path, "w") as written:
        for name, data in ENTRIES.items():
            written.writestr(name, data)
        with written.open("wide", "w", force_zip64=True) as entry:
            entry.write(b"123")
    assert {name: bytes(data) for name, data in read_archive(path).items()} == ENTRIES | {"wide": b"123"}


def test_every_prefix_of_an_archive_is_refused(tmp_path: Path) -> None:
    for content in (build(MEMBERS), build_zip64(MEMBERS)):
        for length in range(len(content)):
            with pytest.raises(ArchiveError):
                read_bytes(tmp_path, content[:length])


def test_more_entries_than_any_model_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.pnnx.zip_directory.MAX_ENTRIES", 2)
    with pytest.raises(ArchiveError, match="3 entries in a directory of .* bytes; expected at most 2"):
        read_bytes(tmp_path, build(MEMBERS))


def test_a_missing_file_a_folder_and_an_impossible_path_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="none.bin: cannot be read: No such file"):
        read_archive(tmp_path / "none.bin")
    with pytest.raises(ArchiveError, match="is a folder; expected a zip archive"):
        read_archive(tmp_path)
    with pytest.raises(ArchiveError, match="cannot be read: embedded null"):
        read_archive(tmp_path / "a\0b")


def test_entries_outlive_the_file_name(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(build(MEMBERS))
    entries = read_archive(path)
    path.unlink()
    assert entries["a.weight"].tobytes() == b"12345678"
    assert entries["a.weight"].readonly


@pytest.mark.parametrize("mode", ["wb", "r+b"])
def test_entries_outlive_what_is_written_over_the_file(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(build(MEMBERS))
    entries = read_archive(path)
    with path.open(mode) as file:
        file.write(b"x")
    assert entries["a.weight"].tobytes() == b"12345678"


@given(lengths=st.lists(st.integers(0, 70), max_size=8))
def test_every_entry_is_aligned_and_whole(lengths: list[int]) -> None:
    members = [Member("n" * (index + 1), bytes(range(n))) for index, n in enumerate(lengths)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.bin"
        path.write_bytes(build(members))
        entries = read_archive(path)
    assert [bytes(data) for data in entries.values()] == [bytes(range(n)) for n in lengths]
    for data in entries.values():
        assert np.frombuffer(data, np.uint8).ctypes.data % ALIGNMENT == 0


def test_file_that_is_no_archive_takes_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(archive, "_allocate")
    path = tmp_path / "model.bin"
    with path.open("wb") as file:
        file.truncate(1 << 34)  # it takes no room on the disk either
    with pytest.raises(ArchiveError, match="not a zip archive; expected a zip end record"):
        read_archive(path)


def test_a_file_that_is_cut_while_it_is_read_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(build(MEMBERS))
    size = path.stat().st_size
    allocate = archive._allocate

    def cut(path: Path, size: int) -> memoryview:
        os.truncate(path, 10)
        return allocate(path, size)

    monkeypatch.setattr(archive, "_allocate", cut)
    with pytest.raises(ArchiveError, match=f"was cut from {size} to 10 bytes while it was read"):
        read_archive(path)


def test_a_file_larger_than_memory_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(*_: object) -> None:
        raise MemoryError

    path = tmp_path / "model.bin"
    path.write_bytes(build(MEMBERS))
    monkeypatch.setattr("engine.pnnx.archive.np.empty", empty)
    with pytest.raises(ArchiveError, match=r"model.bin: there is no memory for its \d+ bytes"):
        read_archive(path)
