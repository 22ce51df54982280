"""Models of a store as a source: listed there, fetched here, and put into service as files of a folder."""

import shutil
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from threading import Lock

from service.config.store_url import StoreUrl
from service.repository.files import ModelFilesError
from service.repository.fingerprint import Fingerprint
from service.repository.load_progress import Step, go_on
from service.repository.model_source import Refusal, SourceError
from service.stores.fetch import Fetcher
from service.stores.file_cache import FileCache
from service.stores.model_paths import models_of
from service.stores.remote_store import RemoteStore

_MOST_ROUNDS = 5
"""Listings at the start until two agree on all models; what still changes then is left to later polls."""


class StoreSource:
    """The models of one place in a store.

    Each state of a model that is taken has a folder of its own, which never changes.

    Args:
        store: lists and reads files.
        url: the place.
        cache: keeps the files.
        single: what a single model is called; None for the names in the store.
        settle_seconds: between the two listings at the start.
    """

    def __init__(
        self, store: RemoteStore, url: StoreUrl, cache: FileCache, single: str | None, settle_seconds: float
    ) -> None:
        self._store = store
        self._url = url
        self._cache = cache
        self._fetcher = Fetcher(store, str(url), cache)
        self._single = single
        self._settle_seconds = settle_seconds
        self._taken: dict[str, Fingerprint] = {}
        self._folders: dict[str, Path] = {}
        self._refused: dict[str, Refusal] = {}
        self._prefixes: dict[str, str] = {}
        self._fetching: set[Path] = set()
        self._count = 0
        self._lock = Lock()  # loads that clients ask for come on several threads

    @property
    def taken(self) -> Mapping[str, Fingerprint]:
        """The files of each model that was taken, as they were listed then."""
        return self._taken

    @property
    def refused(self) -> Mapping[str, Refusal]:
        """The models that `prepare` could not take."""
        return self._refused

    def prepare(self, step: Step = go_on) -> None:
        """Take all models that two listings agree on.

        Raises:
            SourceError: the store cannot be reached, or there is no model.
            LoadStoppedError: `step` raised it.
        """
        step(f"listing {self._url.name}")
        self.tidy(())  # what an earlier attempt took and nobody could load
        listed = self.list()
        for _ in range(_MOST_ROUNDS):
            until = time.monotonic() + self._settle_seconds
            self._take_all(listed, step)
            time.sleep(max(0.0, until - time.monotonic()))
            before, listed = listed, self.list()
            if listed == before:
                return
        for name in [name for name in self._taken if self._taken[name] != listed.get(name)]:
            self.drop(name)
        if not self._taken:
            raise SourceError(f"the models of {self._url} are still changing")

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models that were taken by name, in order of name."""
        return dict(sorted(self._folders.items()))

    def list(self) -> Mapping[str, Fingerprint]:
        """Return the files of each model by its name.

        Raises:
            SourceError: the store cannot be reached, or there is no model.
        """
        try:
            found = models_of(self._store.list(), self._url.name, self._single)
        except SourceError as error:
            where = "" if str(self._url) in str(error) else f"{self._url}: "
            raise SourceError(f"{where}{error}") from error
        self._prefixes = {name: model.prefix for name, model in found.items()}
        return {name: model.files for name, model in found.items()}

    def take(self, name: str, files: Fingerprint, step: Step = go_on) -> None:
        """Fetch a model, as far as its files are not here yet.

        Raises:
            SourceError: the files cannot be had now.
            ModelFilesError: they can be no model's, or are not what `checksums` lists.
            LoadStoppedError: `step` raised it.
        """
        with self._lock:
            self._count += 1
            folder = self._cache.view / str(self._count) / name
            self._fetching.add(folder.parent)
        try:
            self._fetcher.fetch(name, self._prefixes.get(name, ""), files, folder, step)
            with self._lock:
                self._taken[name], self._folders[name] = files, folder
                self._refused.pop(name, None)
        except BaseException:
            shutil.rmtree(folder.parent, ignore_errors=True)
            raise
        finally:
            self._fetching.discard(folder.parent)

    def check(self, name: str) -> None:
        """Do nothing: what was fetched does not change."""

    def find(self, name: str, step: Step = go_on) -> None:
        """Take a model as it is in the store now, if it is there.

        Raises:
            SourceError, ModelFilesError, LoadStoppedError: as for `take`.
        """
        files = self.list().get(name)
        if files is None:
            self.drop(name)
        elif files != self._taken.get(name):
            self.take(name, files, step)

    def drop(self, name: str) -> None:
        """Note that a model is gone."""
        with self._lock:
            self._taken.pop(name, None)
            self._folders.pop(name, None)
            self._refused.pop(name, None)

    def tidy(self, used: Collection[Path]) -> None:
        """Delete the folders of states that are over; files of the cache stay, as far as there is room."""
        with self._lock:
            kept = {folder.parent for folder in self._folders.values()} | self._fetching
            for folder in self._cache.view.iterdir():
                if (
                    folder.is_dir()
                    and folder not in kept
                    and not any(folder in path.parents for path in used)
                ):
                    shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Delete what this process alone had."""
        self._cache.close()

    def _take_all(self, listed: Mapping[str, Fingerprint], step: Step) -> None:
        for name in self._taken.keys() - listed.keys():
            self.drop(name)
        for name, files in listed.items():
            if self._taken.get(name) != files:
                try:
                    self.take(name, files, step)
                except ModelFilesError as error:
                    self.drop(name)
                    self._refused[name] = Refusal(files, str(error))
