"""Changes of models that are noticed, and those that are not waited for, by a poller of a folder."""

import logging
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.config.settings import Settings
from service.errors import ServiceError
from service.repository import model_loader
from service.repository.load_progress import LoadProgress, LoadState, LoadStoppedError
from service.repository.model_source import ModelSource, SourceError
from service.repository.poller import Poller
from service.repository.repository import load_entries, load_repository
from service.repository.version_loader import load_version
from tests.service.stores.folders import PolledFolder, scale_of, write_scale


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the versions that are loaded, as they are."""
    loaded: list[str] = []

    def record(name: str, *args: object, version: str, **rest: object) -> object:
        loaded.append(f"{name}/{version}")
        return load_version(name, *args, version=version, **rest)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(model_loader, "load_version", record)
    return loaded


def test_what_did_not_change_is_never_loaded_again(tmp_path: Path, loads: list[str]) -> None:
    write_scale(tmp_path / "a", 2)
    write_scale(tmp_path / "b" / "1", 3)
    polled = PolledFolder(tmp_path)
    before = list(polled.repository)
    polled.polls(10)
    assert list(polled.repository) == before
    assert sorted(loads) == ["a/1", "b/1"], "they are loaded side by side"
    assert (polled.changes, polled.repository.generation) == ({}, 0)
    assert (polled.poller.succeeded, polled.poller.failed) == (10, 0)


def test_a_change_is_loaded_once_two_listings_agree(tmp_path: Path) -> None:
    write_scale(tmp_path / "m", 2)
    polled = PolledFolder(tmp_path)
    old = polled.repository.find("m")
    write_scale(tmp_path / "m", 3)
    polled.polls(1)
    assert polled.scales() == {"m/1": 2}
    polled.polls(1)
    assert polled.scales() == {"m/1": 3}
    assert polled.retired == [old]
    polled.polls(5)
    assert polled.changes == {"loaded": 1}


def test_what_goes_on_changing_is_not_loaded(tmp_path: Path, loads: list[str]) -> None:
    write_scale(tmp_path / "m", 2)
    polled = PolledFolder(tmp_path)
    loads.clear()
    folder = write_scale(tmp_path / "new", 5)
    whole = (folder / "model.bin").read_bytes()
    for size in range(1, 8):
        (folder / "model.bin").write_bytes(whole[: size * len(whole) // 8])
        polled.polls(1)
    assert (loads, list(polled.scales())) == ([], ["m/1"])
    (folder / "model.bin").write_bytes(whole)
    polled.polls(2)
    assert loads == ["new/1"]
    assert polled.scales() == {"m/1": 2, "new/1": 5}


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path: Path) -> None:
    folder = write_scale(tmp_path / "m", 2)
    other = write_scale(tmp_path / ".staging", 3)
    status = (folder / "model.bin").stat()
    polled = PolledFolder(tmp_path)
    os.utime(other / "model.bin", ns=(status.st_atime_ns, status.st_mtime_ns))
    (other / "model.bin").replace(folder / "model.bin")
    assert (folder / "model.bin").stat().st_mtime_ns == status.st_mtime_ns
    polled.polls(2)
    assert polled.scales() == {"m/1": 3}


def test_only_versions_that_changed_are_loaded(tmp_path: Path, loads: list[str]) -> None:
    for version in "12":
        write_scale(tmp_path / "m" / version, int(version))
    polled = PolledFolder(tmp_path)
    first, second = polled.repository
    loads.clear()
    write_scale(tmp_path / "m" / "3", 3)
    polled.polls(2)
    assert loads == ["m/3"]
    assert list(polled.repository)[:2] == [first, second]
    assert polled.scales() == {"m/1": 1, "m/2": 2, "m/3": 3}
    shutil.rmtree(tmp_path / "m" / "1")
    polled.polls(2)
    assert (loads, polled.retired) == (["m/3"], [first])
    assert list(polled.scales()) == ["m/2", "m/3"]
    (tmp_path / "m" / "model.toml").write_text('versions = "latest"\n')
    polled.polls(2)
    assert loads == ["m/3", "m/3"], "what all versions share has changed"
    assert list(polled.scales()) == ["m/3"]


def test_a_model_comes_and_goes(tmp_path: Path) -> None:
    write_scale(tmp_path / "a", 2)
    polled = PolledFolder(tmp_path)
    write_scale(tmp_path / "b", 3)
    polled.polls(2)
    assert polled.repository.names == ["a", "b"]
    shutil.rmtree(tmp_path / "b")
    polled.polls(1)
    assert polled.repository.names == ["a", "b"]
    polled.polls(1)
    assert polled.repository.names == ["a"]
    with pytest.raises(ServiceError) as caught:
        polled.repository.find("b")
    assert caught.value.code == "model_not_found"
    assert [model.name for model in polled.retired] == ["b"]
    write_scale(tmp_path / "b", 4)
    polled.polls(2)
    assert polled.scales() == {"a/1": 2, "b/1": 4}
    assert polled.changes == {"loaded": 2, "removed": 1}


def test_a_broken_change_leaves_what_was_and_is_tried_once(tmp_path: Path, loads: list[str]) -> None:
    folder = write_scale(tmp_path / "m" / "1", 2).parent
    polled = PolledFolder(tmp_path)
    loads.clear()
    write_scale(folder / "2", 3)
    (folder / "2" / "model.bin").write_bytes(b"no zip")
    polled.polls(6)
    assert loads == ["m/2"]
    assert (polled.scales(), polled.changes) == ({"m/1": 2}, {"refused": 1})
    lines = [(line.version, line.state) for line in polled.repository.index()]
    assert lines == [("1", "READY"), ("2", "UNAVAILABLE")]
    shutil.rmtree(folder / "2")
    polled.polls(2)
    assert [line.state for line in polled.repository.index()] == ["READY"]
    assert loads == ["m/2"], "version 1 is what it was"
    write_scale(folder / "2", 3)
    polled.polls(2)
    assert polled.scales() == {"m/1": 2, "m/2": 3}


def test_a_folder_that_is_gone_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "models"
    write_scale(root / "m", 2)
    polled = PolledFolder(root)
    root.rename(tmp_path / "away")
    with caplog.at_level(logging.INFO):
        polled.polls(3)
        root.mkdir()
        polled.polls(3)
        assert polled.scales() == {"m/1": 2}
        root.rmdir()
        (tmp_path / "away").rename(root)
        polled.polls(3)
    said = [r.getMessage() for r in caplog.records if r.name == "service.repository.poller"]
    assert said == ["models cannot be listed", "models can be listed again"]
    assert (polled.poller.failed, polled.changes) == (6, {})


def test_a_link_in_circles_ends(tmp_path: Path) -> None:
    folder = write_scale(tmp_path / "m", 2)
    (folder / "again").symlink_to(folder)
    (folder / "nowhere").symlink_to(folder / "gone")
    polled = PolledFolder(tmp_path)
    polled.polls(2)
    assert (polled.scales(), polled.changes) == ({"m/1": 2}, {})


def test_a_load_can_be_stopped(tmp_path: Path) -> None:
    write_scale(tmp_path / "m", 2)
    progress = LoadProgress()
    polled = PolledFolder(tmp_path, progress.check)
    write_scale(tmp_path / "m", 3)
    polled.polls(1)
    progress.stop()
    with pytest.raises(LoadStoppedError):
        polled.polls(1)
    assert polled.scales() == {"m/1": 2}


def test_the_thread_goes_on_after_a_failure_and_ends_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_scale(tmp_path / "m", 2)
    polled = PolledFolder(tmp_path)
    poller = Poller(polled.source, polled.repository, 0.001)
    calls: list[None] = []

    def poll() -> None:
        calls.append(None)
        if len(calls) == 3:
            poller.stop()
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(poller, "poll", poll)
    poller._run()
    assert len(calls) == 3
    assert "models cannot be polled" in caplog.text


def test_the_start_waits_for_models_where_they_are_polled(tmp_path: Path) -> None:
    root = tmp_path / "models"
    said: list[str] = []

    def watch(state: object) -> None:
        said.append(str(state))
        if "no folder" in str(state):
            write_scale(root / "half", 2)
            (root / "half" / "model.bin").unlink()
        elif "no model is left" in str(state):
            write_scale(root / "m", 3)

    settings = Settings(models=root, model_control="poll", backend="numpy", poll_seconds=0.001)
    source = ModelSource(root, is_polled=True)
    entries = load_entries(settings, LoadProgress(watch), source)
    assert [name for name, entry in entries.items() if entry.versions] == ["m"]
    assert any("there is no folder" in text for text in said)
    assert any("found model.param and none" in text for text in said)


def test_waiting_for_models_can_be_stopped(tmp_path: Path) -> None:
    progress = LoadProgress(lambda state: progress.stop() if "no folder" in str(state) else None)
    with pytest.raises(LoadStoppedError):
        load_entries(Settings(models=tmp_path / "nowhere", model_control="poll"), progress)


def test_files_that_change_while_they_are_loaded_are_not_served(tmp_path: Path) -> None:
    folder = write_scale(tmp_path / "m", 2)
    changes = [4.0]

    def step(text: str) -> None:
        while changes and polled.source.taken["m"] != first:
            write_scale(folder, changes.pop())

    polled = PolledFolder(tmp_path, step)
    first = polled.source.taken["m"]
    write_scale(folder, 3)
    polled.polls(2)
    assert not changes, "the load was under way"
    assert (polled.scales(), polled.changes) == ({"m/1": 2}, {})
    polled.polls(2)
    assert (polled.scales(), polled.changes) == ({"m/1": 4}, {"loaded": 1})


def test_a_change_that_was_disturbed_is_loaded_once_its_files_are_as_they_were(tmp_path: Path) -> None:
    folder = write_scale(tmp_path / "m", 2)
    other = tmp_path / "m" / "model.param~"

    def step(text: str) -> None:
        if polled.source.taken["m"] != first and not done:
            other.touch()

    done: list[None] = []
    polled = PolledFolder(tmp_path, step)
    first = polled.source.taken["m"]
    write_scale(folder, 3)
    polled.polls(2)
    assert other.exists()
    assert polled.scales() == {"m/1": 2}
    done.append(None)
    other.unlink()
    polled.polls(1)
    assert polled.scales() == {"m/1": 3}


def test_a_return_to_what_was_served_is_tried_again_when_it_was_disturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_scale(tmp_path / "m", 2)
    polled = PolledFolder(tmp_path)
    (folder / "model.bin").rename(folder / ".sound")
    (folder / "model.bin").write_bytes(b"no zip")
    polled.polls(2)
    assert polled.changes == {"refused": 1}
    (folder / ".sound").replace(folder / "model.bin")

    def disturb(*_: object) -> None:
        raise SourceError("its files changed while they were loaded")

    with monkeypatch.context() as patched:
        patched.setattr(ModelSource, "check", disturb)
        polled.polls(2)
    assert polled.changes == {"refused": 1}
    polled.polls(1)
    assert polled.changes == {"refused": 1, "loaded": 1}


def test_a_new_model_that_changes_while_it_is_loaded_says_so(tmp_path: Path) -> None:
    write_scale(tmp_path / "m", 2)

    def step(text: str) -> None:
        if "new" in polled.source.taken:
            write_scale(tmp_path / "new", 4)

    polled = PolledFolder(tmp_path, step)
    write_scale(tmp_path / "new", 3)
    polled.polls(2)
    assert polled.scales() == {"m/1": 2}
    (line,) = [line for line in polled.repository.index() if line.name == "new"]
    assert line.reason == "its files changed while they were loaded"


def test_a_model_that_changes_during_the_start_is_loaded_once_it_rests(tmp_path: Path) -> None:
    write_scale(tmp_path / "m", 2)
    write_scale(tmp_path / "n", 5)
    changes = [3.0]

    def watch(state: LoadState) -> None:
        if state.models is not None and changes:
            write_scale(tmp_path / "m", changes.pop())

    settings = Settings(models=tmp_path, model_control="poll", backend="numpy")
    source = ModelSource(tmp_path, is_polled=True)
    repository = load_repository(settings, progress=LoadProgress(watch), source=source)
    assert repository.names == ["n"]
    assert next(line.reason for line in repository.index()) == "its files changed while they were loaded"
    poller = Poller(source, repository, 1.0)
    poller.poll()
    assert repository.names == ["n"]
    poller.poll()
    assert scale_of(repository.find("m")) == 3


def test_a_model_that_fails_unforeseen_does_not_hold_up_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in "ab":
        write_scale(tmp_path / name, 2)
    polled = PolledFolder(tmp_path)
    take = ModelSource.take

    def fail(source: ModelSource, name: str, *rest: Any) -> None:
        if name == "a":
            raise RuntimeError("unforeseen")
        take(source, name, *rest)

    for name in "ab":
        write_scale(tmp_path / name, 3)
    with monkeypatch.context() as patched:
        patched.setattr(ModelSource, "take", fail)
        polled.polls(3)
    assert polled.scales() == {"a/1": 2, "b/1": 3}
    assert "model cannot be polled" in caplog.text
    polled.polls(1)
    assert polled.scales() == {"a/1": 3, "b/1": 3}


def test_a_folder_that_is_away_while_a_change_is_loaded_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_scale(tmp_path / "m", 2)
    polled = PolledFolder(tmp_path)

    def gone(_: object) -> dict[str, Path]:
        raise OSError("stale file handle")

    write_scale(tmp_path / "m", 3)
    with monkeypatch.context() as patched:
        patched.setattr(model_loader.ModelLoader, "folders", gone)
        polled.polls(2)
    assert (polled.scales(), polled.changes) == ({"m/1": 2}, {})
    polled.polls(1)
    assert polled.scales() == {"m/1": 3}
