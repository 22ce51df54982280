"""The cache of files, on a disk that others use as well."""

import hashlib
from pathlib import Path

import pytest

from service.stores.file_cache import CacheError, FileCache, cache_folder


def put(cache: FileCache, origin: str, data: bytes) -> Path:
    fetched = cache.view / "fetched"
    fetched.write_bytes(data)
    return cache.keep(origin, fetched, hashlib.sha256(data).hexdigest())


def kept(folder: Path) -> int:
    return len(list((folder / "objects").iterdir()))


def test_what_is_the_same_is_kept_once(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "c", 100)
    assert put(cache, "one", b"data") == put(cache, "two", b"data")
    assert (cache.find("one"), kept(tmp_path / "c")) == (cache.find("two"), 1)
    assert cache.find("three") is None


def test_what_was_not_used_for_longest_goes_first_and_what_is_served_stays(tmp_path: Path) -> None:
    cache = FileCache(tmp_path / "c", 100)
    for name in "abcd":
        put(cache, name, name.encode() * 30)
        cache.make_room(0)
    assert [name for name in "abcd" if cache.find(name)] == ["b", "c", "d"]
    served = cache.find("b")
    assert served is not None
    (cache.view / "link").hardlink_to(served)
    cache.find("c")
    cache.make_room(80)
    assert [name for name in "abcd" if cache.find(name)] == ["b"]
    names = [path.read_text() for path in (tmp_path / "c" / "names").iterdir()]
    assert names == [served.name]


def test_views_of_processes_that_ended_are_deleted_and_others_are_not(tmp_path: Path) -> None:
    alive = FileCache(tmp_path / "c", 100)
    views = alive.view.parent
    (views / "dead" / "1").mkdir(parents=True)
    (views / "dead" / "fetched").write_bytes(b"half")
    (views / "dead.lock").touch()
    (views / "orphan" / "1").mkdir(
        parents=True
    )  # a load that was under way when its server ended made it anew
    other = FileCache(tmp_path / "c", 100)
    assert {path.stem for path in views.iterdir()} == {alive.view.name, other.view.name}
    other.close()
    assert {path.stem for path in views.iterdir()} == {alive.view.name}


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(CacheError, match="others may write to it"):
        FileCache(shared, 100)
    (tmp_path / "link").symlink_to(tmp_path / "target", target_is_directory=True)
    (tmp_path / "target").mkdir()
    with pytest.raises(CacheError, match="is a link"):
        FileCache(tmp_path / "link", 100)
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match="cannot keep files"):
        FileCache(tmp_path / "file", 100)
    assert (FileCache(tmp_path / "own", 100).view.parent.stat().st_mode & 0o777) == 0o700


def test_waiting_for_another_process_can_be_stopped(tmp_path: Path) -> None:
    first, second = FileCache(tmp_path / "c", 100), FileCache(tmp_path / "c", 100)

    def stop(step: str) -> None:
        raise InterruptedError(step)

    with first.alone(), pytest.raises(InterruptedError, match="another process"), second.alone(stop):
        pass
    with second.alone(stop):
        pass


def test_the_folder_is_that_of_the_users_caches() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kuiper-store")
    assert cache_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/kuiper-store")
    with pytest.raises(CacheError, match="no home"):
        cache_folder({})
