"""A store in memory, and one whose files tests change, with a poller of them that tests drive."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from service.config.settings import Settings
from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.loaded_model import LoadedModel
from service.repository.model_source import SourceError
from service.repository.poller import Poller
from service.repository.repository import load_repository
from service.stores.file_pool import FilePool
from service.stores.store_source import StoreSource
from tests.service.stores.folders import scale_of, write_scale

URL = StoreUrl("s3", "bucket", "models")
MAX_BYTES = 1 << 20


class Bucket:
    """A store in memory: its objects by path. Tags are those of S3, digests."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.reads: list[str] = []
        self.is_gone = False

    def put(self, path: str, data: bytes) -> None:
        self.objects[path] = data

    def put_folder(self, folder: Path, prefix: str) -> None:
        """Put all files of a folder, but for hidden ones."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def delete(self, prefix: str) -> None:
        self.objects = {path: data for path, data in self.objects.items() if not path.startswith(prefix)}

    def list(self) -> Iterator[FileMark]:
        self._check()
        for path, data in self.objects.items():
            yield FileMark(path, len(data), self._tag(path))

    def read(self, file: FileMark) -> Iterator[bytes]:
        self._check()
        self.reads.append(file.path)
        if self._tag(file.path) != file.tag:
            raise SourceError(f"{file.path} has changed since it was listed")
        data = self.objects[file.path]
        for start in range(0, len(data), 100):
            self._check()
            yield data[start : start + 100]

    def _tag(self, path: str) -> str:
        return hashlib.md5(self.objects[path], usedforsecurity=False).hexdigest()

    def _check(self) -> None:
        if self.is_gone:
            raise SourceError(
                "s3://bucket/models cannot be read: GET http://store.internal/b: connection refused"
            )


class PolledBucket:
    """The models of a bucket, loaded as a server loads them, and polled when a test says so."""

    def __init__(self, bucket: Bucket, folder: Path, max_bytes: int = MAX_BYTES, **settings: Any) -> None:
        self.folder = folder
        self.cache = FilePool(folder / "cache", max_bytes)
        self.source = StoreSource(bucket, URL, self.cache, None)
        self.settings = Settings(
            models=URL, model_control="poll", backend="numpy", poll_seconds=0.001, **settings
        )
        self.retired: list[LoadedModel] = []
        self.repository = load_repository(self.settings, self.retired.append, source=self.source)
        self.poller = Poller(self.source, self.repository, 1.0)

    def polls(self, times: int) -> None:
        for _ in range(times):
            self.poller.poll()

    def scales(self) -> dict[str, float]:
        return {f"{model.name}/{model.version}": scale_of(model) for model in self.repository}

    @property
    def changes(self) -> dict[str, int]:
        return {outcome: count for outcome, count in self.poller.changes.items() if count}

    def states(self) -> int:
        """Return how many states of the bucket are on the disk."""
        return len(list((self.folder / "cache" / "processes").glob("*/*")))


def put_scale(bucket: Bucket, tmp_path: Path, path: str, scale: float) -> None:
    """Put a model that multiplies by a number into a bucket."""
    bucket.put_folder(write_scale(tmp_path / "made" / path, scale), path)
