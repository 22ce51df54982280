"""Servers whose models lie in S3, Azure Blob Storage and Google Cloud Storage, and what is read of these stores."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph
from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError
from service.stores.file_pool import FilePool
from service.stores.object_store import ObjectStore
from service.stores.store_errors import worded
from service.stores.store_source import StoreSource
from tests.cluster.buckets import CLOUDS, NAME, SOON, AzureBucket, Bucket, S3Bucket, until
from tests.cluster.google_bucket import GoogleBucket
from tests.cluster.load import digits_request
from tests.cluster.store_server import StoreServer
from tests.service.stores.folders import write_scale

DIGITS = Path(__file__).parents[2] / "models" / "digits"
NAMES = ("plain", "a b", "a+b", "50%", "a%20b", "naïve", "数字", "a?b#c&d=e", "it's~(1)", "sub/a b/c%2Fd")


@pytest.fixture(scope="module", params=[S3Bucket, AzureBucket, GoogleBucket], ids=lambda kind: kind.scheme)
def bucket(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    made: Bucket = request.param(tmp_path_factory.mktemp("bucket"))
    yield made
    made.close()


def files_of(folder: Path, scale: float) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in write_scale(folder / "made", scale).iterdir()}


def put_scale(bucket: Bucket, folder: Path, path: str, scale: float) -> None:
    for name, data in files_of(folder, scale).items():
        bucket.put(f"models/{path}/{name}", data)


@pytest.fixture(scope="module")
def server(bucket: Bucket, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """Start a server before its store, which all checks share: each has a model of its own."""
    folder = tmp_path_factory.mktemp("server")
    bucket.stop()
    for name in ("digits.pnnx.param", "digits.pnnx.bin", "model.toml", "labels.txt"):
        bucket.put(f"models/digits/{name}", (DIGITS / name).read_bytes())
    put_scale(bucket, folder, "m/1", 1)
    started = StoreServer(bucket, folder)
    try:
        reason = started.wait_for_reason()
        assert bucket.url not in reason
        bucket.start()
        yield started.wait()
        started.stop()
    finally:
        started.kill()
    log = started.log.read_text()
    assert bucket.secret not in log
    assert "Traceback" not in log


def test_models_are_those_of_the_folder_bit_by_bit(server: StoreServer) -> None:
    asked = digits_request(3)
    response = server.client.post(asked.path, content=asked.body, headers=asked.headers)
    pictures = np.random.default_rng(3).random((3, 1, 28, 28), dtype=np.float32)
    graph = RuntimeGraph(DIGITS / "digits.pnnx.param", backend="numpy")
    graph.build()
    # as many threads as in the server: they decide the order of sums
    with threadpool_limits(1, user_api="blas"):
        expected = graph.forward([pictures])[0]
    assert response.content.endswith(expected.tobytes())


def test_what_does_not_change_is_not_loaded_again(server: StoreServer) -> None:
    server.wait_polls(1)  # the one that found them is counted once they are ready
    changes = server.changes()
    server.wait_polls(10)
    assert server.changes() == changes
    assert server.scale("m") == 1


def test_half_an_upload_is_never_loaded(server: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    files = files_of(tmp_path, 2)
    put_scale(bucket, tmp_path, "half/1", 1)
    until(lambda: server.serves("half", 1))
    for name, data in files.items():
        server.wait_polls(4)
        assert server.scale("half") == 1
        bucket.put(f"models/half/2/{name}", data)
    until(lambda: server.scale("half") == 2)


def test_no_request_fails_while_versions_come(server: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    over = threading.Event()
    seen: list[set[float]] = []
    failures: list[BaseException] = []
    put_scale(bucket, tmp_path, "busy/1", 1)
    until(lambda: server.serves("busy", 1))

    def ask() -> None:
        values: set[float] = set()
        seen.append(values)
        try:
            with httpx.Client(base_url=server.client.base_url, timeout=SOON) as client:
                while not over.is_set():
                    values.add(server.scale("busy", client))
        except BaseException as error:
            failures.append(error)

    asking = [threading.Thread(target=ask) for _ in range(3)]
    for thread in asking:
        thread.start()
    try:
        for version in range(2, 5):
            put_scale(bucket, tmp_path, f"busy/{version}", version)
            until(lambda version=version: server.scale("busy") == version)  # type: ignore[misc]  # bound now
        for name in files_of(tmp_path, 4):
            bucket.delete(f"models/busy/4/{name}")
        until(lambda: server.scale("busy") == 3)
    finally:
        over.set()
        for thread in asking:
            thread.join()
    assert failures == []
    assert all(values <= {1, 2, 3, 4} and 3 in values for values in seen)


def test_objects_whose_names_are_tricks_change_nothing(
    server: StoreServer, bucket: Bucket, tmp_path: Path
) -> None:
    put_scale(bucket, tmp_path, "tricks/1", 1)
    until(lambda: server.serves("tricks", 1))
    server.wait_polls(1)  # which counts what came of the one before
    changes = server.changes()
    bucket.put("models/tricks/empty/", b"")
    bucket.put("models/tricks/1/", b"")
    until(lambda: server.changes() == changes + 1)
    assert server.scale("tricks") == 1
    evil = "evil/" + (
        "a" * 256 if bucket.scheme == "az" else "a\\..\\b"
    )  # azurite makes a slash of a backslash
    bucket.put(f"models/{evil}", b"x")
    server.wait_polls(2, "failed")
    assert server.scale("tricks") == 1
    bucket.put("models/tricks/../../x", b"x")
    server.wait_polls(2, "failed")
    assert server.scale("tricks") == 1
    assert not list(server.log.parent.rglob("x"))
    for name in ("tricks/../../x", evil):
        bucket.delete(f"models/{name}")
    server.wait_polls(2)


def test_a_store_that_is_gone_changes_nothing(server: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    before = server.log.read_text()
    bucket.stop()
    server.wait_polls(2, "failed")
    assert server.scale("m") == 1
    assert server.get("/readyz").status_code == 200
    put_scale(bucket, tmp_path, "m/2", 2)
    bucket.start()
    until(lambda: server.serves("m", 2))  # models may be gone until all of them are sent again
    log = server.log.read_text().removeprefix(before)
    assert log.count("models cannot be listed") == log.count("models can be listed again") == 1


@pytest.mark.parametrize("bucket", [S3Bucket], indirect=True, ids=["s3"])
def test_two_processes_share_a_cache_with_one_that_was_killed(bucket: Bucket, tmp_path: Path) -> None:
    for name in [name for name in bucket.objects if not name.startswith("models/m/")]:
        bucket.delete(name)
    bucket.start()
    first = StoreServer(bucket, tmp_path).wait()
    first.kill()
    files = tmp_path / "cache" / "store" / "files"
    written = {file.name: file.stat().st_mtime_ns for file in files.iterdir()}
    second, third = StoreServer(bucket, tmp_path), StoreServer(bucket, tmp_path)
    assert second.wait().scale("m") == third.wait().scale("m")
    second.stop()
    third.stop()
    assert {file.name: file.stat().st_mtime_ns for file in files.iterdir()} == written, (
        "they were fetched once"
    )
    assert not any(files.with_name("processes").iterdir())


Opener = Callable[..., "WordedStore"]


@pytest.fixture
def opened(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Return what opens a place of the bucket, with the variables that it is to be reached by."""
    bucket.start()

    def open_place(path: str, name: str = NAME, environment: dict[str, str] | None = None) -> "WordedStore":
        for variable in [variable for variable in os.environ if variable.startswith(CLOUDS)]:
            monkeypatch.delenv(variable)
        monkeypatch.setenv("HOME", str(tmp_path))
        for variable, value in (bucket.environment if environment is None else environment).items():
            monkeypatch.setenv(variable, value)
        return WordedStore(StoreUrl(bucket.scheme, name, path))

    return open_place


class WordedStore:
    """A place in an object store, whose errors are worded as its source words them."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        with worded(url):
            self._store = ObjectStore(url)

    def list(self) -> Iterator[FileMark]:
        with worded(self._url):
            yield from self._store.list()

    def read(self, file: FileMark) -> Iterator[bytes]:
        with worded(self._url):
            yield from self._store.read(file)


def contents(store: WordedStore) -> dict[str, bytes]:
    return {file.path: b"".join(store.read(file)) for file in store.list()}


@pytest.mark.parametrize("place", ["names", "a b/50%/naïve+数?#&"])
def test_names_are_those_that_were_given(bucket: Bucket, opened: Opener, place: str) -> None:
    files = {name: f"{place} {name}".encode() for name in NAMES}
    for name, data in files.items():
        bucket.put(f"{place}/{name}", data)
        bucket.put(f"{place}2/{name}", b"beside")
    assert contents(opened(place)) == files


def test_all_pages_of_a_listing_are_read(bucket: Bucket, opened: Opener) -> None:
    names = {f"{number:05}" for number in range(2 * bucket.page + bucket.page // 2)}
    for name in names:
        bucket.put(f"pages/{name}", b"x")
    listed = [file.path for file in opened("pages").list()]
    assert len(listed) == len(names)
    assert set(listed) == names


def test_an_object_that_was_replaced_since_it_was_listed_is_not_read(bucket: Bucket, opened: Opener) -> None:
    bucket.put("replaced/a", b"old")
    store = opened("replaced")
    (file,) = store.list()
    bucket.put("replaced/a", b"new")
    with pytest.raises(SourceError, match="a has changed since it was listed"):
        list(store.read(file))
    bucket.delete("replaced/a")
    with pytest.raises(SourceError, match=f"{bucket.scheme}://bucket/replaced cannot be read: .* not found"):
        list(store.read(file))


def test_a_bucket_that_is_not_there_is_reported(opened: Opener) -> None:
    with pytest.raises(SourceError, match="404 Not Found: (NoSuchBucket|ContainerNotFound): The specified"):
        contents(opened("models", "nowhere"))


def test_a_prefix_without_objects_is_reported(bucket: Bucket, opened: Opener, tmp_path: Path) -> None:
    bucket.put("nothing2/m/model.param", b"")
    cache = FilePool(tmp_path / "cache", 1 << 20)
    source = StoreSource(opened("nothing"), StoreUrl(bucket.scheme, NAME, "nothing"), cache, None)
    with pytest.raises(SourceError, match=f"{bucket.scheme}://bucket/nothing: no models: expected folders"):
        source.list()


def test_wrong_credentials_are_reported_and_not_shown(bucket: Bucket, opened: Opener) -> None:
    bucket.put("secrets/a", b"")
    store = opened("secrets", environment=bucket.strangers)
    with (
        bucket.strict(),
        pytest.raises(SourceError, match="as its credentials are missing, wrong or") as caught,
    ):
        contents(store)
    assert bucket.secret not in str(caught.value)
    assert "<" not in str(caught.value)


def test_missing_credentials_are_reported(bucket: Bucket, opened: Opener) -> None:
    with pytest.raises(
        SourceError, match="as the environment has no credentials and this machine gives none"
    ):
        contents(opened("secrets", environment=bucket.nobody))


@pytest.mark.parametrize("bucket", [AzureBucket, GoogleBucket], indirect=True, ids=["az", "gs"])
def test_other_credentials_that_the_guide_names_are_taken(bucket: Bucket, opened: Opener) -> None:
    bucket.put("other/a", b"data")
    assert contents(opened("other", environment=bucket.others)) == {"a": b"data"}
