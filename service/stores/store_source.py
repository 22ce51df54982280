"""Models of a store as a source: a folder of links to files that are fetched once."""

import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Protocol

from service.config.store_url import StoreUrl
from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.load_progress import Step, go_on
from service.repository.model_source import MAX_FILES, ModelSource, SourceError
from service.stores.file_pool import FilePool
from service.stores.store_errors import worded


class RemoteStore(Protocol):
    """Lists and reads files below one place of a store. Their paths are relative to it.

    Raises any error of its library where the store cannot be reached or refuses.
    """

    def list(self) -> Iterator[FileMark]:
        """Yield all files, in any order."""

    def read(self, file: FileMark) -> Iterator[bytes]:
        """Yield the bytes of a file in pieces.

        Raises:
            SourceError: its tag is another one by now.
        """


class StoreSource(ModelSource):
    """The models of one place in a store: a folder for each state of the place, which never changes.

    Methods raise what those of `ModelSource` do.

    Args:
        store: lists and reads files.
        url: the place.
        pool: holds the files.
        name: what a single model is called; None for its name in the store.
    """

    def __init__(self, store: RemoteStore, url: StoreUrl, pool: FilePool, name: str | None) -> None:
        super().__init__(Path(url.name), name)
        self._store = store
        self._url = url
        self._pool = pool
        self._files: Fingerprint = frozenset()
        self._states: set[Path] = set()

    def prepare(self, step: Step = go_on) -> None:
        """Fetch all models."""
        self.tidy(())  # of an earlier attempt
        self.taken = dict(self.list(step))

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models in the current state of the place, by name."""
        try:
            return super().folders()
        except ModelFilesError as error:
            raise ModelFilesError(str(error).replace(str(self._root), str(self._url))) from error

    def list(self, step: Step = go_on) -> Mapping[str, Fingerprint]:
        """Fetch what has changed in the store, and return the files of each model by its name."""
        self.refresh(step)
        return super().list(step)

    def refresh(self, step: Step = go_on) -> None:
        """Fetch what has changed in the store."""
        step(f"listing {self._url.name}")
        with worded(self._url):
            files = _visible(self._store.list(), self._url)
        _check(files, self._url, self._pool.max_bytes)
        try:
            with self._pool.locked(step):
                if files != self._files:
                    self._make_state(files, step)
        except OSError as error:
            raise SourceError(f"{self._url} cannot be cached: {error.strerror or error}") from error

    def tidy(self, used: Collection[Path]) -> None:
        """Delete states of the place in which no file is in use, except for the current one."""
        kept = {parent for path in (self._root, *used) for parent in (path, *path.parents)}
        for state in self._states - kept:
            shutil.rmtree(state, ignore_errors=True)
            self._states.discard(state)

    def close(self) -> None:
        """Delete all states."""
        self._pool.close()

    def _make_state(self, files: Fingerprint, step: Step) -> None:
        """Make a state of the place: links to files of the pool, which fetches those that it lacks."""
        state = Path(tempfile.mkdtemp(dir=self._pool.own_folder()))
        root = state / self._url.name
        try:
            for file in sorted(files):
                key = hashlib.sha256(repr((str(self._url), *file)).encode()).hexdigest()
                place = root / file.path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.hardlink_to(self._pool.get(key, file.size, partial(self._fetch, file, step)))
        except BaseException:
            shutil.rmtree(state, ignore_errors=True)
            raise
        self._states.add(state)
        self._root, self._files = root, files

    def _fetch(self, file: FileMark, step: Step, place: Path) -> None:
        size = 0
        with place.open("wb") as target:
            for chunk in self._read(file):
                size += len(chunk)
                if size > file.size:
                    break
                percent = 100 * size // file.size
                step(f"fetching {file.path}, {percent} % of {file.size:,} bytes")  # may end it
                target.write(chunk)
        if size != file.size:
            raise SourceError(f"{file.path} has {size} bytes or more where {file.size} are listed")

    def _read(self, file: FileMark) -> Iterator[bytes]:
        with worded(self._url):
            # what has no bytes may be the marker of a folder, which cannot be read
            yield from self._store.read(file) if file.size else ()


def _visible(files: Iterable[FileMark], url: StoreUrl) -> Fingerprint:
    """Return files without hidden ones, and without those that stand for folders, as consoles of stores make them.

    Raises:
        SourceError: there is none, or too many.
    """
    visible = (file for file in files if "/." not in f"/{file.path}")
    listed = list(islice(visible, MAX_FILES + 1))
    if len(listed) > MAX_FILES:
        raise SourceError(
            f"{url}: more than {MAX_FILES} files are listed; expected a place that holds models only"
        )
    folders = {""} | {str(parent) for file in listed for parent in PurePosixPath(file.path).parents}
    found = frozenset(file for file in listed if file.path not in folders and not file.path.endswith("/"))
    if not found:
        raise SourceError(f"{url}: no models: expected folders that each hold a .param and a .bin file")
    return found


def _check(files: Fingerprint, url: StoreUrl, max_bytes: int) -> None:
    """Check that no file would be written elsewhere, or fill the disk.

    Raises:
        SourceError: a name is no name of a file, or a folder of files is too large.
    """
    sizes: Counter[str] = Counter()
    for file in files:
        if "//" in f"/{file.path}" or "\\" in file.path or not file.path.isprintable():
            raise SourceError(f"{url}: {file.path[:200]!r} cannot be the name of a file here")
        folder, is_inside, _ = file.path.partition("/")
        sizes[folder if is_inside else ""] += file.size
    for folder, size in sizes.items():
        if size > max_bytes:
            raise SourceError(f"{url}/{folder}: {size} bytes are more than store_cache_bytes, {max_bytes}")
