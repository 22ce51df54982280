"""The pool of files, on a disk that others use as well."""

import os
from pathlib import Path

import pytest

from service.config.setting_file import SettingsError
from service.repository.load_progress import go_on
from service.stores.file_pool import FilePool, pool_folder


def put(pool: FilePool, key: str, size: int = 30) -> Path:
    """Have a file in use; returns the link to it."""

    def fetch(place: Path) -> None:
        place.write_bytes(key.encode() * size)

    with pool.locked(go_on):
        link = pool.own_folder() / key
        link.hardlink_to(pool.get(key, size, fetch))
    return link


def have(pool: FilePool, key: str) -> Path:
    """Have a file that is not fetched again."""
    with pool.locked(go_on):
        return pool.get(key, 30, interrupt)


def interrupt(place: Path) -> None:
    """Fetch half of a file."""
    place.write_bytes(b"half")
    raise InterruptedError


def found(folder: Path) -> list[str]:
    """Return the files that are on the disk."""
    return sorted(path.name for path in (folder / "files").iterdir())


def test_a_file_is_found_again_by_its_key(tmp_path: Path) -> None:
    put(FilePool(tmp_path / "c", 100), "a")
    pool = FilePool(tmp_path / "c", 100)
    with pytest.raises(InterruptedError):
        have(pool, "b")
    assert have(pool, "a").read_bytes() == b"a" * 30


def test_what_was_not_fetched_to_its_end_is_not_found(tmp_path: Path) -> None:
    pool = FilePool(tmp_path / "c", 100)
    with pytest.raises(InterruptedError):
        have(pool, "a")
    assert found(tmp_path / "c") == []
    assert put(pool, "a").read_bytes() == b"a" * 30


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_what_is_damaged_is_fetched_again_and_stays_where_it_is_in_use(tmp_path: Path, damage: str) -> None:
    pool = FilePool(tmp_path / "c", 100)
    link = put(pool, "a")
    file = tmp_path / "c" / "files" / "a"
    file.unlink()
    if damage == "cut":
        file.write_bytes(b"a" * 29)
    with pytest.raises(InterruptedError):
        have(pool, "a")
    assert link.read_bytes() == b"a" * 30
    put(FilePool(tmp_path / "c", 100), "a")
    assert file.read_bytes() == b"a" * 30


def test_what_was_not_used_for_longest_goes_first_and_what_any_process_uses_stays(tmp_path: Path) -> None:
    pool, other = FilePool(tmp_path / "c", 230), FilePool(tmp_path / "c", 230)
    put(other, "a")
    for key in "bcd":
        put(pool, key).unlink()
    have(pool, "b")
    put(pool, "e", 160).unlink()
    assert found(tmp_path / "c") == ["a", "b", "d", "e"]
    other.close()
    put(pool, "f", 40)
    assert found(tmp_path / "c") == ["b", "e", "f"]


def test_using_a_file_does_not_change_when_it_was_written(tmp_path: Path) -> None:
    pool = FilePool(tmp_path / "c", 100)
    written = put(pool, "a").stat().st_mtime_ns
    assert have(pool, "a").stat().st_mtime_ns == written


def test_links_of_processes_that_have_ended_are_deleted(tmp_path: Path) -> None:
    dead, alive = FilePool(tmp_path / "c", 100), FilePool(tmp_path / "c", 100)
    links = [put(dead, "a"), put(alive, "b")]
    os.close(dead._descriptor)  # as the end of its process does
    put(FilePool(tmp_path / "c", 100), "c")
    assert [link.exists() for link in links] == [False, True]


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(SettingsError, match="others may write to it"):
        FilePool(shared, 100)
    (tmp_path / "link").symlink_to(tmp_path / "target", target_is_directory=True)
    (tmp_path / "target").mkdir()
    with pytest.raises(SettingsError, match="is a link"):
        FilePool(tmp_path / "link", 100)
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="cannot keep files"):
        FilePool(tmp_path / "file", 100)
    FilePool(tmp_path / "own", 100)
    assert ((tmp_path / "own").stat().st_mode & 0o777) == 0o700


def test_waiting_for_another_process_can_be_stopped(tmp_path: Path) -> None:
    first, second = FilePool(tmp_path / "c", 100), FilePool(tmp_path / "c", 100)

    def stop(step: str) -> None:
        raise InterruptedError(step)

    with (
        first.locked(go_on),
        pytest.raises(InterruptedError, match="another process"),
        second.locked(stop),
    ):
        raise AssertionError("two processes fetch at once")
    with second.locked(stop):
        """Nobody is waited for."""


def test_the_folder_is_that_of_the_users_caches() -> None:
    assert pool_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kuiper-store")
    assert pool_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/kuiper-store")
    with pytest.raises(SettingsError, match="no home"):
        pool_folder({})
