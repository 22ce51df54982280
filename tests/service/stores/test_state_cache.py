"""The cache of states of models, on a disk that others use as well."""

from pathlib import Path

import pytest

from service.config.setting_file import SettingsError
from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark
from service.repository.load_progress import Step, go_on
from service.stores.state_cache import StateCache, cache_folder

FILES = frozenset({FileMark("file", 30, "")})


def put(cache: StateCache, state: str, size: int = 30, step: Step = go_on) -> Path:
    """Have a state of a model that has its name; returns its folder, which is in use."""

    def fetch(folder: Path) -> None:
        folder.mkdir()
        (folder / "file").write_bytes(state.encode() * size)

    cache.take(state, state, frozenset({FileMark("file", size, "")}), fetch, step)
    return cache.folders[state].parent


def release(cache: StateCache) -> None:
    for state in list(cache.folders):
        cache.drop(state)
    cache.keep(())


def found(folder: Path) -> list[str]:
    """Return the states that are on the disk."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != "part")


def test_a_state_is_found_again_by_its_name_alone(tmp_path: Path) -> None:
    folder = put(StateCache(tmp_path / "c", 100), "a")
    cache = StateCache(tmp_path / "c", 100)
    with pytest.raises(InterruptedError):
        cache.take("b", "b", FILES, interrupt)
    cache.take("a", "a", FILES, interrupt)
    assert cache.folders == {"a": folder / "a"}


def interrupt(folder: Path) -> None:
    """Fetch half of a model."""
    folder.mkdir()
    (folder / "half").write_bytes(b"half")
    raise InterruptedError


def test_what_was_not_fetched_to_its_end_is_not_found(tmp_path: Path) -> None:
    cache = StateCache(tmp_path / "c", 100)
    with pytest.raises(InterruptedError):
        cache.take("a", "a", FILES, interrupt)
    assert (found(tmp_path / "c"), cache.folders) == ([], {})
    put(cache, "a")
    assert not (tmp_path / "c" / "a" / "a" / "half").exists()


@pytest.mark.parametrize("damage", ["cut", "missing", "link"])
def test_what_is_damaged_is_deleted_and_fetched_again(tmp_path: Path, damage: str) -> None:
    cache = StateCache(tmp_path / "c", 100)
    file = put(cache, "a") / "a" / "file"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"b" * 30)
    if damage == "cut":
        file.write_bytes(b"a" * 29)
    else:
        file.unlink()
        if damage == "link":
            file.symlink_to(elsewhere)
    with pytest.raises(InterruptedError):
        cache.take("a", "a", FILES, interrupt)
    assert not file.parent.parent.exists()
    put(cache, "a")
    assert file.read_bytes() == b"a" * 30
    assert elsewhere.read_bytes() == b"b" * 30


def test_what_is_too_large_is_refused_before_it_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match="101 bytes are more than store_cache_bytes, 100"):
        put(StateCache(tmp_path / "c", 100), "a", 101)
    assert found(tmp_path / "c") == []


def test_what_was_not_used_for_longest_goes_first_and_what_any_process_uses_stays(tmp_path: Path) -> None:
    cache, other = StateCache(tmp_path / "c", 230), StateCache(tmp_path / "c", 230)
    put(other, "a")
    for state in "bcd":
        put(cache, state)
        release(cache)
    put(cache, "e", 200)
    release(cache)
    assert found(tmp_path / "c") == ["a", "d", "e"]
    release(other)
    put(cache, "f")
    assert found(tmp_path / "c") == ["e", "f"]


def test_a_process_keeps_what_it_serves_and_what_is_in_use_only(tmp_path: Path) -> None:
    cache, other = StateCache(tmp_path / "c", 100), StateCache(tmp_path / "c", 30)
    folders = [put(cache, state) for state in "abc"]
    put(cache, "a")
    (folders[1] / "b" / "file").unlink()
    put(cache, "b")  # as after a damage
    for state in "bc":
        cache.drop(state)
    cache.keep([folders[1] / "b" / "file"])
    put(other, "d")
    assert found(tmp_path / "c") == ["a", "b", "d"]


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

    def fetch(_: Path) -> None:
        with pytest.raises(InterruptedError, match="another process"):
            second.take("a", "a", FILES, fetch, stop)
        raise InterruptedError

    with pytest.raises(InterruptedError):
        first.take("a", "a", FILES, fetch)
    assert put(second, "a", step=stop) == tmp_path / "c" / "a"


def test_the_folder_is_that_of_the_users_caches() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kuiper-store")
    assert cache_folder({"XDG_CACHE_HOME": "c", "HOME": "/h"}) == Path("/h/.cache/kuiper-store")
    with pytest.raises(SettingsError, match="no home"):
        cache_folder({})
