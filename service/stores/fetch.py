"""Brings one model from a store into a folder of this machine, and checks that it is what the store holds."""

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path

from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.load_progress import Step
from service.repository.model_source import SourceError
from service.stores import checksums
from service.stores.file_cache import FileCache, link, sha256_of
from service.stores.model_paths import check_paths
from service.stores.remote_store import RemoteStore

FETCH_SECONDS = 3600.0
"""Time that the files of a model may take."""


class Fetcher:
    """Brings models of one place.

    Args:
        store: reads files.
        place: the URL of the place, which distinguishes its files from those of others in the cache.
        cache: keeps them.
    """

    def __init__(self, store: RemoteStore, place: str, cache: FileCache) -> None:
        self._store = store
        self._place = place
        self._cache = cache

    def fetch(self, name: str, prefix: str, files: Fingerprint, folder: Path, step: Step) -> None:
        """Bring the files of a model, those that are not in the cache yet, into a new folder.

        Args:
            name: the model.
            prefix: where its files are below the place; empty, or with a slash at the end.
            files: the files.
            folder: the folder, which must not exist.
            step: called before each file, and while it is fetched.

        Raises:
            ModelFilesError: the files can be no model's, are too large, or not what `checksums` lists.
            SourceError: they cannot be had now.
            LoadStoppedError: `step` raised it.
        """
        check_paths(name, files)
        size = sum(file.size for file in files)
        if size > self._cache.most_bytes:
            raise ModelFilesError(f"{size} bytes are more than store_cache_bytes, {self._cache.most_bytes}")
        until = time.monotonic() + FETCH_SECONDS
        try:
            with self._cache.alone(step):
                kept = {file.path: self._bring(file, prefix, step, until) for file in sorted(files)}
                self._check_sums(kept)
                for path, source in kept.items():
                    place = folder / path
                    place.parent.mkdir(parents=True, exist_ok=True)
                    link(source, place)
        except OSError as error:
            raise SourceError(f"model {name!r} cannot be kept: {error.strerror or error}") from error

    def _bring(self, file: FileMark, prefix: str, step: Step, until: float) -> Path:
        remote = file._replace(path=prefix + file.path)
        origin = "\0".join((self._place, remote.path, remote.tag, str(remote.size)))
        kept = self._cache.find(origin)
        if kept is not None and kept.stat().st_size == file.size:
            return kept
        step(f"fetching {file.path}")
        self._cache.make_room(file.size)
        fetched = self._cache.view / "fetched"
        digest = self._download(remote, fetched, step, until)
        self._check_digest(remote, fetched, digest, step, until)
        return self._cache.keep(origin, fetched, digest)

    def _download(self, file: FileMark, place: Path, step: Step, until: float) -> str:
        """Write a file; returns its SHA-256."""
        digest, size = hashlib.sha256(), 0
        with place.open("wb") as target:
            # what has no bytes may stand for a folder, and is not to be had
            for chunk in self._store.read(file) if file.size else ():
                step(f"fetching {file.path}")  # which ends it where the server shuts down
                size += len(chunk)
                if size > file.size or time.monotonic() > until:
                    break
                digest.update(chunk)
                target.write(chunk)
        if time.monotonic() > until:
            raise SourceError(f"{file.path} did not arrive within {FETCH_SECONDS:g} s")
        if size != file.size:
            raise SourceError(f"{file.path} has {size} bytes or more where {file.size} are listed")
        return digest.hexdigest()

    def _check_digest(self, file: FileMark, place: Path, fetched: str, step: Step, until: float) -> None:
        """Check a file against the store's digest of it."""
        expected = self._store.digest(file)
        if expected is None or _digest(place, *expected) == expected[1]:
            return
        if self._store.is_sure():
            raise SourceError(
                f"{file.path} did not arrive as it was sent: its {expected[0]} is not {expected[1]}"
            )
        # the tag may be no digest: of an encrypted object it looks like one. What comes twice is what is there.
        if self._download(file, place, step, until) != fetched:
            raise SourceError(f"{file.path} did not arrive as it was sent")

    def _check_sums(self, kept: Mapping[str, Path]) -> None:
        lists = [path for path in kept if path.rpartition("/")[2] == checksums.NAME and path.count("/") <= 1]
        digests = {path: sha256_of(place) for path, place in kept.items()} if lists else {}
        for path in lists:
            folder = path.removesuffix(checksums.NAME)
            if kept[path].stat().st_size > checksums.MOST_BYTES:
                raise ModelFilesError(f"{path} has more than {checksums.MOST_BYTES} bytes")
            try:
                text = kept[path].read_text(encoding="utf-8")
            except UnicodeDecodeError as error:
                raise ModelFilesError(f"{path} is not UTF-8") from error
            checksums.check_checksums(checksums.parse_checksums(text, folder), digests, folder)


def _digest(path: Path, algorithm: str, expected: str) -> str:
    """Return the digest of a file in hexadecimal; `expected` has its length."""
    del expected
    if algorithm == "git":
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        return digest.hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
