"""Models of a store: fetched once, put into service whole or not at all."""

import errno
import logging
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from service.config.settings import Settings
from service.repository.fingerprint import FileMark
from service.repository.load_progress import LoadProgress, LoadStoppedError
from service.repository.model_entry import ModelEntry
from service.repository.model_loader import ModelLoader
from service.repository.model_source import SourceError
from service.repository.repository import load_entries, load_repository
from service.stores.file_pool import FilePool
from service.stores.store_source import StoreSource
from tests.service.stores.buckets import MAX_BYTES, URL, Bucket, PolledBucket, put_scale
from tests.service.stores.folders import scale_of


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    made = Bucket()
    put_scale(made, tmp_path, "a", 2)
    put_scale(made, tmp_path, "b/1", 3)
    return made


def test_models_are_fetched_once_and_served(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path)
    assert polled.scales() == {"a/1": 2, "b/1": 3}
    assert sorted(bucket.reads) == sorted(bucket.objects)
    polled.polls(5)
    assert (polled.changes, polled.repository.generation) == ({}, 0)
    assert len(bucket.reads) == len(bucket.objects)


def test_another_process_takes_what_is_in_the_cache(bucket: Bucket, tmp_path: Path) -> None:
    first = PolledBucket(bucket, tmp_path)
    bucket.reads.clear()
    second = PolledBucket(bucket, tmp_path)
    assert (bucket.reads, second.scales()) == ([], first.scales())
    second.source.close()
    first.polls(2)
    assert all(model.graph.param_path.exists() for model in first.repository)


def test_what_is_cut_in_the_cache_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    first = PolledBucket(bucket, tmp_path)
    weights = first.source.folders()["a"] / "model.bin"
    (damaged,) = (file for file in (tmp_path / "cache" / "files").iterdir() if file.samefile(weights))
    first.source.close()
    damaged.write_bytes(b"")
    bucket.reads.clear()
    assert PolledBucket(bucket, tmp_path).scales() == {"a/1": 2, "b/1": 3}
    assert bucket.reads == ["a/model.bin"]


def test_half_an_upload_is_never_loaded(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path)
    whole = Bucket()
    put_scale(whole, tmp_path, "b/2", 9)
    for path, data in whole.objects.items():
        polled.polls(1)
        bucket.put(path, data)
    polled.polls(1)
    assert (polled.scales(), polled.changes) == ({"a/1": 2, "b/1": 3}, {})
    polled.polls(1)
    assert polled.scales() == {"a/1": 2, "b/1": 3, "b/2": 9}
    assert polled.changes == {"loaded": 1}


def test_new_files_of_a_version_replace_the_old_ones(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path)
    first = polled.repository.find("b")
    bucket.reads.clear()
    put_scale(bucket, tmp_path, "b/2", 4)
    polled.polls(2)
    assert polled.repository.find("b", "1") is first
    assert all(path.startswith("b/2/") for path in bucket.reads)
    put_scale(bucket, tmp_path, "b/1", 5)
    bucket.delete("a/")
    polled.polls(2)
    assert polled.scales() == {"b/1": 5, "b/2": 4}
    assert first in polled.retired
    put_scale(bucket, tmp_path, "b/2", 6)
    polled.polls(2)
    assert polled.scales() == {"b/1": 5, "b/2": 6}


def test_a_store_that_is_gone_changes_nothing(
    bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    polled = PolledBucket(bucket, tmp_path)
    bucket.is_gone = True
    with caplog.at_level(logging.INFO):
        polled.polls(4)
        assert polled.scales() == {"a/1": 2, "b/1": 3}
        bucket.is_gone = False
        put_scale(bucket, tmp_path, "a", 7)
        polled.polls(2)
    assert polled.scales() == {"a/1": 7, "b/1": 3}
    said = [r.getMessage() for r in caplog.records if r.name == "service.repository.poller"]
    assert said == ["models cannot be listed", "models can be listed again"]


def test_an_empty_store_changes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path)
    bucket.delete("")
    polled.polls(4)
    assert polled.scales() == {"a/1": 2, "b/1": 3}
    assert polled.poller.failed == 4


def test_the_start_waits_for_a_store_and_shows_why(bucket: Bucket, tmp_path: Path) -> None:
    bucket.is_gone = True
    said: list[str] = []

    def watch(state: object) -> None:
        said.append(str(state))
        if "connection refused" in str(state):
            bucket.is_gone = False

    source = StoreSource(bucket, URL, FilePool(tmp_path / "cache", MAX_BYTES), None)
    settings = Settings(models=URL, backend="numpy", poll_seconds=0.001)
    progress = LoadProgress(watch)
    bucket.is_gone = True
    assert list(load_entries(settings, progress, source)) == ["a", "b"]
    assert any("connection refused" in text for text in said)
    assert not any("://" in text for text in said), "clients see it"


def test_the_start_shows_how_much_of_a_file_is_fetched(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a/labels.txt", bytes(250))
    source = StoreSource(bucket, URL, FilePool(tmp_path / "cache", MAX_BYTES), None)
    said: list[str] = []
    load_entries(
        Settings(models=URL, backend="numpy"), LoadProgress(lambda state: said.append(str(state))), source
    )
    parts = [text.partition("labels.txt, ")[2] for text in said if "fetching a/labels.txt" in text]
    assert parts == ["40 % of 250 bytes", "80 % of 250 bytes", "100 % of 250 bytes"]


def test_a_model_that_is_too_large_changes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path, max_bytes=5000)
    bucket.put("a/model.bin", bytes(5000))
    with pytest.raises(
        SourceError, match="s3://bucket/models/a: .* bytes are more than store_cache_bytes, 5000"
    ):
        polled.source.list()
    bucket.reads.clear()
    polled.polls(3)
    assert (polled.scales(), polled.poller.failed, bucket.reads) == ({"a/1": 2, "b/1": 3}, 3, [])


def test_a_full_disk_leaves_what_was_and_is_tried_again(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = PolledBucket(bucket, tmp_path)
    put_scale(bucket, tmp_path, "a", 8)

    def full(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        polled.polls(4)
    assert (polled.scales(), polled.changes) == ({"a/1": 2, "b/1": 3}, {})
    polled.polls(2)
    assert polled.scales() == {"a/1": 8, "b/1": 3}


def test_a_store_that_goes_away_in_the_middle_is_asked_again(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path)
    put_scale(bucket, tmp_path, "a", 8)
    read = bucket.read

    def cut(file: object) -> object:
        chunks = read(file)  # type: ignore[arg-type]
        yield next(chunks)
        bucket.is_gone = True
        yield from chunks

    bucket.read = cut  # type: ignore[method-assign, assignment]
    polled.polls(3)
    assert polled.scales() == {"a/1": 2, "b/1": 3}
    bucket.read, bucket.is_gone = read, False  # type: ignore[method-assign]
    polled.polls(2)
    assert polled.scales() == {"a/1": 8, "b/1": 3}


def test_single_models_go_by_the_name_that_is_set(bucket: Bucket, tmp_path: Path) -> None:
    bucket.delete("a/")
    source = StoreSource(bucket, URL, FilePool(tmp_path / "cache", MAX_BYTES), "other")
    assert list(load_entries(Settings(models=URL, backend="numpy"), source=source)) == ["other"]


def test_a_refused_change_leaves_the_traffic_as_it_was(bucket: Bucket, tmp_path: Path) -> None:
    put_scale(bucket, tmp_path, "b/2", 4)
    bucket.put("b/model.toml", b'[traffic]\nweights = {"1" = 1}\n')
    polled = PolledBucket(bucket, tmp_path)
    entry = polled.repository.entry("b")
    assert entry.traffic is not None
    assert polled.repository.find("b").version == "1"
    bucket.put("b/model.toml", b'[traffic]\nweights = {"2" = 1}\n')
    bucket.put("b/2/model.bin", b"no zip")
    polled.polls(2)
    assert polled.changes == {"refused": 1}
    assert polled.repository.entry("b").traffic is entry.traffic
    assert polled.repository.find("b").version == "1"


def test_states_that_are_over_do_not_pile_up(bucket: Bucket, tmp_path: Path) -> None:
    polled = PolledBucket(bucket, tmp_path, max_bytes=sum(map(len, bucket.objects.values())))
    for number in range(8):
        bucket.put("a/model.param", b"no model %d" % number)
        polled.polls(2)
    assert (polled.scales(), polled.changes) == ({"a/1": 2, "b/1": 3}, {"refused": 8})
    for number in range(8):  # never the same in two listings
        bucket.put("b/log", b"%d" % number)
        polled.polls(1)
    assert polled.states() <= 3
    put_scale(bucket, tmp_path, "a", 4)
    polled.polls(2)
    assert all(model.graph.param_path.exists() for model in polled.repository)


def test_attempts_at_the_start_do_not_pile_up(bucket: Bucket, tmp_path: Path) -> None:
    bucket.delete("b/")
    whole = bucket.objects["a/model.param"]
    cache = FilePool(tmp_path / "cache", sum(map(len, bucket.objects.values())))
    bucket.put("a/model.param", b"no model")
    source = StoreSource(bucket, URL, cache, None)
    attempts: list[int] = []

    def watch(state: object) -> None:
        if "no model is left" in str(state):
            attempts.append(len(list((tmp_path / "cache" / "processes").glob("*/*"))))
            bucket.put("a/model.param", b"no model %d" % len(attempts) if len(attempts) < 5 else whole)

    settings = Settings(models=URL, backend="numpy", model_control="poll", poll_seconds=0.001)
    assert list(load_entries(settings, LoadProgress(watch), source)) == ["a"]
    assert max(attempts) <= 2


def test_a_file_that_changes_while_the_server_starts_is_fetched_again(bucket: Bucket, tmp_path: Path) -> None:
    read = bucket.read
    changes = iter(range(2))

    def change(file: FileMark) -> Iterator[bytes]:
        if file.path == "b/1/model.param" and next(changes, None) is not None:
            bucket.put("b/1/model.param", bucket.objects["b/1/model.param"] + b"\n")
        return read(file)

    bucket.read = change  # type: ignore[method-assign]
    assert PolledBucket(bucket, tmp_path).scales() == {"a/1": 2, "b/1": 3}
    assert bucket.reads.count("a/model.bin") == 1


def test_a_server_that_ends_does_not_wait_for_the_rest_of_a_file(bucket: Bucket, tmp_path: Path) -> None:
    progress = LoadProgress()
    pieces: list[bytes] = []
    read = bucket.read

    def cut(file: FileMark) -> Iterator[bytes]:
        for piece in read(file):
            pieces.append(piece)
            if len(pieces) == 3:
                progress.stop()
            yield piece

    source = StoreSource(bucket, URL, FilePool(tmp_path / "cache", MAX_BYTES), None)
    source.list()
    bucket.put("c/large.bin", bytes(1000))  # it comes in ten pieces
    bucket.read = cut  # type: ignore[method-assign]
    with pytest.raises(LoadStoppedError):
        source.list(progress.step)
    assert len(pieces) == 3


def test_files_are_not_replaced_while_another_load_reads_them(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = StoreSource(bucket, URL, FilePool(tmp_path / "cache", MAX_BYTES), None)
    settings = Settings(models=URL, backend="numpy", model_control="explicit")
    repository = load_repository(settings, source=source)
    other = Thread(target=repository.load, args=("a",))
    folders: list[Path] = []
    load = ModelLoader.load

    def read(loader: ModelLoader, name: str, folder: Path, *rest: Any) -> ModelEntry:
        folders.append(folder)
        if len(folders) == 1:
            put_scale(bucket, tmp_path, "a", 6)
            other.start()
            other.join(0.3)
            assert source.folders()["a"] == folder
        return load(loader, name, folder, *rest)

    monkeypatch.setattr(ModelLoader, "load", read)
    put_scale(bucket, tmp_path, "a", 5)
    repository.load("a")
    other.join()
    assert scale_of(repository.find("a")) == 6
    assert len(set(folders)) == 2
