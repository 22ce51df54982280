import zipfile
from pathlib import Path

import pytest

from engine.pnnx.archive import read_archive
from engine.pnnx.archive_writer import write_archive

ENTRIES = {"conv.weight": bytes(range(250)), "conv.bias": b"", "größe": b"\xff\xfe\xfd", "m.0": b"x" * 64}


def views(entries: dict[str, bytes]) -> list[tuple[str, memoryview]]:
    return [(name, memoryview(data)) for name, data in entries.items()]


@pytest.mark.parametrize("zip64_from", [2**30, 0])
def test_an_archive_reads_back_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zip64_from: int
) -> None:
    monkeypatch.setattr("engine.pnnx.archive_writer.ZIP64_FROM", zip64_from)
    path = tmp_path / "model.bin"
    write_archive(path, views(ENTRIES))
    assert [(name, bytes(data)) for name, data in read_archive(path).items()] == list(ENTRIES.items())
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == list(ENTRIES)


@pytest.mark.parametrize("zip64_from", [2**30, 0])
def test_entries_begin_at_multiples_of_64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zip64_from: int
) -> None:
    monkeypatch.setattr("engine.pnnx.archive_writer.ZIP64_FROM", zip64_from)
    path = tmp_path / "model.bin"
    write_archive(path, views(ENTRIES))
    content = path.read_bytes()
    for data in filter(None, ENTRIES.values()):
        assert content.index(data) % 64 == 0


def test_the_same_entries_give_the_same_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "a", views(ENTRIES))
    write_archive(tmp_path / "b", views(ENTRIES))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_no_entries_make_an_archive_too(tmp_path: Path) -> None:
    write_archive(tmp_path / "a", [])
    assert read_archive(tmp_path / "a") == {}
