"""Models of a store as a source: listed there, fetched here, and put into service as files of a folder."""

import hashlib
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from service.config.store_url import StoreUrl
from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.load_progress import Step, go_on
from service.repository.model_source import ModelSource, Refusal, SourceError
from service.stores.model_paths import check_paths, models_of
from service.stores.state_cache import StateCache

_MAX_ROUNDS = 5
"""Listings at the start until two agree on all models."""


class RemoteStore(Protocol):
    """Lists and reads files below one place of a store. Their paths are relative to it."""

    def list(self) -> Iterator[FileMark]:
        """Yield all files, in any order.

        Raises:
            SourceError: the store cannot be reached, or refuses.
        """

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in pieces.

        Raises:
            SourceError: the store cannot be reached, the file is gone, or its tag is another one by now.
        """


class StoreSource(ModelSource):
    """The models of one place in a store. Each state of a model has a folder that never changes.

    Methods raise what those of `ModelSource` do.

    Args:
        store: lists and reads files.
        url: the place.
        cache: holds the folders.
        single: what a single model is called; None for the names in the store.
        settle_seconds: between the two listings at the start.
    """

    def __init__(
        self, store: RemoteStore, url: StoreUrl, cache: StateCache, single: str | None, settle_seconds: float
    ) -> None:
        super().__init__()
        self._store = store
        self._url = url
        self._cache = cache
        self._single = single
        self._settle_seconds = settle_seconds
        self._prefixes: dict[str, str] = {}

    def prepare(self, step: Step = go_on) -> None:
        """Take all models that two listings agree on; while all of them are still changing, there is none."""
        step(f"listing {self._url.name}")
        self.tidy(())  # what an earlier attempt took and nobody could load
        for name, files in self._settled().items():
            try:
                if self.taken.get(name) != files:
                    self.take(name, files, step)
            except ModelFilesError as error:
                self.drop(name)
                self.refused[name] = Refusal(files, str(error))

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models that were taken by name, in order of name."""
        return dict(sorted(self._cache.folders.items()))

    def list(self) -> Mapping[str, Fingerprint]:
        """Return the files of each model by its name."""
        found = models_of(self._store.list(), self._url, self._single)
        self._prefixes = {name: prefix for name, (prefix, _) in found.items()}
        return {name: files for name, (_, files) in found.items()}

    def take(self, name: str, files: Fingerprint, step: Step = go_on) -> None:
        """Fetch a model, as far as its files are not here yet.

        It is refused if its files can be no model's, are too large, or are not what `checksums` lists.
        """
        check_paths(name, files)
        origin = repr((str(self._url), self._prefixes.get(name, ""), name, sorted(files)))
        state = hashlib.sha256(origin.encode()).hexdigest()
        try:
            self._cache.take(name, state, files, lambda folder: self._fetch(name, files, folder, step), step)
        except OSError as error:
            raise SourceError(f"model {name!r} cannot be cached: {error.strerror or error}") from error
        self.taken[name] = files
        self.refused.pop(name, None)

    def find(self, name: str, step: Step = go_on) -> None:
        """Take a model as it is in the store now, if it is there."""
        files = self.list().get(name)
        if files is None:
            self.drop(name)
        elif files != self.taken.get(name):
            self.take(name, files, step)

    def drop(self, name: str) -> None:
        """Note that a model is gone."""
        super().drop(name)
        self._cache.drop(name)

    def tidy(self, used: Collection[Path]) -> None:
        """Let the cache evict states that are over."""
        self._cache.keep(used)

    def _settled(self) -> Mapping[str, Fingerprint]:
        """Return the models that are the same in two listings; forget others. What changes on is left to polls."""
        listed = self.list()
        for _ in range(_MAX_ROUNDS):
            time.sleep(self._settle_seconds)
            before, listed = listed, self.list()
            if listed == before:
                break
        settled = {name: files for name, files in listed.items() if before.get(name) == files}
        for name in self.taken.keys() - settled.keys():
            self.drop(name)
        if not settled:
            raise SourceError(f"the models of {self._url} are still changing")
        return settled

    def _fetch(self, name: str, files: Fingerprint, folder: Path, step: Step) -> None:
        """Write the files of a model to a folder; links those of the state that was taken last."""
        known, prefix = self.taken.get(name, frozenset()), self._prefixes.get(name, "")
        for file in sorted(files):
            place = folder / file.path
            place.parent.mkdir(parents=True, exist_ok=True)
            if file in known:
                with suppress(OSError):  # what others deleted is fetched again
                    os.link(self._cache.folders[name] / file.path, place)
            if not place.exists() or place.stat().st_size != file.size:
                place.unlink(missing_ok=True)
                self._download(file._replace(path=prefix + file.path), place, step)

    def _download(self, file: FileMark, place: Path, step: Step) -> None:
        size = 0
        with place.open("wb") as target:
            # what has no bytes may be the marker of a folder, which cannot be read
            for chunk in self._store.read(file) if file.size else ():
                size += len(chunk)
                if size > file.size:
                    break
                step(
                    f"fetching {file.path}, {100 * size // file.size} % of {file.size:,} bytes"
                )  # may end it
                target.write(chunk)
        if size != file.size:
            raise SourceError(f"{file.path} has {size} bytes or more where {file.size} are listed")
