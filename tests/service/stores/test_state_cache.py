"""The cache of states of models, on a disk that others use as well."""

from pathlib import Path

import pytest

from service.config.setting_file import SettingsError
from service.repository.fingerprint import FileMark
from service.stores.state_cache import StateCache, cache_folder


def put(cache: StateCache, state: str, size: int = 30) -> Path:
    with cache.alone():
        part = cache.begin(size)
        (part / "m").mkdir()
        (part / "m" / "file").write_bytes(state.encode() * size)
        return cache.complete(part, state)


def find(cache: StateCache, state: str, size: int = 30) -> Path | None:
    return cache.find(state, "m", [FileMark("file", size, "")])


def found(cache: StateCache, **sizes: int) -> list[str]:
    with cache.alone():
        return [state for state in "abcdef" if find(cache, state, sizes.get(state, 30))]


def test_a_state_is_found_again_by_its_name_alone(tmp_path: Path) -> None:
    folder = put(StateCache(tmp_path / "c", 100), "a")
    cache = StateCache(tmp_path / "c", 100)
    with cache.alone():
        assert find(cache, "a") == folder
        assert find(cache, "b") is None


def test_what_was_not_fetched_to_its_end_is_not_found(tmp_path: Path) -> None:
    cache = StateCache(tmp_path / "c", 100)
    with cache.alone():
        (cache.begin(0) / "half").write_bytes(b"half")
    assert found(cache) == []
    put(cache, "a")
    assert not (tmp_path / "c" / "a" / "half").exists()


@pytest.mark.parametrize("damage", ["cut", "missing", "link"])
def test_what_is_damaged_is_not_found_and_deleted(tmp_path: Path, damage: str) -> None:
    cache = StateCache(tmp_path / "c", 100)
    file = put(cache, "a") / "m" / "file"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(file.read_bytes())
    if damage == "cut":
        file.write_bytes(b"a" * 29)
    else:
        file.unlink()
        if damage == "link":
            file.symlink_to(elsewhere)
    assert found(cache) == []
    assert not file.parent.parent.exists()
    assert elsewhere.exists()


def test_what_was_not_used_for_longest_goes_first_and_what_any_process_uses_stays(tmp_path: Path) -> None:
    cache, other = StateCache(tmp_path / "c", 230), StateCache(tmp_path / "c", 230)
    first = put(cache, "a")
    other.use(first)
    for state in "bcd":
        cache.use(put(cache, state))
        cache.keep(())
    put(cache, "e", 200)
    assert found(cache, e=200) == ["a", "d", "e"]
    other.keep(())
    put(cache, "f")
    assert found(cache, e=200) == ["e", "f"]


def test_a_process_keeps_what_it_names_only(tmp_path: Path) -> None:
    cache = StateCache(tmp_path / "c", 0)
    folders = [put(StateCache(tmp_path / "c", 1000), state) for state in "ab"]
    for folder in folders:
        cache.use(folder)
        cache.use(folder)  # as after a damage
    cache.keep(folders[:1])
    put(cache, "c")
    assert found(cache) == ["a", "c"]


def test_folders_of_others_are_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(SettingsError, match="others may write to it"):
        StateCache(shared, 100)
    (tmp_path / "link").symlink_to(tmp_path / "target", target_is_directory=True)
    (tmp_path / "target").mkdir()
    with pytest.raises(SettingsError, match="is a link"):
        StateCache(tmp_path / "link", 100)
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="cannot keep files"):
        StateCache(tmp_path / "file", 100)
    StateCache(tmp_path / "own", 100)
    assert ((tmp_path / "own").stat().st_mode & 0o777) == 0o700


def test_waiting_for_another_process_can_be_stopped(tmp_path: Path) -> None:
    first, second = StateCache(tmp_path / "c", 100), StateCache(tmp_path / "c", 100)

    def stop(step: str) -> None:
        raise InterruptedError(step)

    with first.alone(), pytest.raises(InterruptedError, match="another process"), second.alone(stop):
        pass
    with second.alone(stop):
        pass


def test_the_folder_is_that_of_the_users_caches() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kuiper-store")
    assert cache_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/kuiper-store")
    with pytest.raises(SettingsError, match="no home"):
        cache_folder({})
