"""Where models come from: a folder of this machine, or what a subclass brings into one."""

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from service.repository.files import ModelFilesError, model_folders
from service.repository.fingerprint import FileMark, Fingerprint
from service.repository.load_progress import Step, go_on

MAX_FILES = 100_000
"""Files of a model that are looked at; a folder of more is no model, and each poll would take seconds."""
_MAX_DEPTH = 8
"""Folders within folders that are looked into; links that lead in circles end there."""
_NOT_FILES = frozenset({"__pycache__"})


class SourceError(Exception):
    """A source cannot be reached, or what was asked of it cannot be had now; the message says why."""


class ModelSource:
    """A folder of models. Any thread may call any method; `take` and `drop` are called by one thread at a time.

    Args:
        root: the folder of the models, or of a single one.
        name: what the single model is called; None for the names of the folders.
        is_polled: whether changes of its files are to be noticed.

    Attributes:
        taken: the files of each model that is to be served, as they were listed then.
    """

    def __init__(self, root: Path, name: str | None = None, is_polled: bool = False) -> None:
        self.taken: dict[str, Fingerprint] = {}
        self._root = root
        self._name = name
        self._is_polled = is_polled
        self._places: Mapping[str, Path] = {}

    def prepare(self, step: Step = go_on) -> None:
        """Note which files there are before they are read, where changes are to be noticed; called before each start.

        Raises:
            SourceError: the models cannot be listed now.
            LoadStoppedError: `step` raised it.
        """
        if self._is_polled:
            step("reading the folder of models")
            self.taken = dict(self.list(step))

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models by name, in order of name; of a single one by the name that is set.

        Raises:
            ModelFilesError, OSError: the folder does not exist or holds no model.
        """
        found = model_folders(self._root)
        if self._name is None:
            return found
        if len(found) > 1:
            raise ModelFilesError(f"model_name is for a single model; {self._root} holds {len(found)}")
        (folder,) = found.values()
        return {self._name: folder}

    def list(self, step: Step = go_on) -> Mapping[str, Fingerprint]:
        """Return the files of each model by its name.

        Raises:
            SourceError: that cannot be found out, or there is no model.
            LoadStoppedError: `step` raised it.
        """
        del step
        try:
            self._places = self.folders()
            return {name: frozenset(_marks(folder)) for name, folder in self._places.items()}
        except (ModelFilesError, OSError) as error:
            raise SourceError(str(error)) from error

    def refresh(self, step: Step = go_on) -> None:
        """Bring the models as they are now, before a load that a client asked for.

        Raises:
            SourceError, LoadStoppedError: as for `list`.
        """
        del step

    def take(self, name: str, files: Fingerprint) -> None:
        """Note that a model is loaded from these files."""
        self.taken[name] = files

    def drop(self, name: str) -> None:
        """Note that a model is gone."""
        self.taken.pop(name, None)

    def check(self, name: str) -> None:
        """Check that the files of a model that was just loaded are those that it was taken with, if it is polled.

        Raises:
            SourceError: they are not: what was loaded may be of both.
        """
        if not self._is_polled:
            return
        try:
            if frozenset(_marks(self._places[name])) == self.taken.get(name):
                return
        except (OSError, KeyError):  # they are gone
            pass
        raise SourceError("its files changed while they were loaded")

    def tidy(self, used: Collection[Path]) -> None:
        """Forget what is neither current nor among the files in use."""
        del used

    def close(self) -> None:
        """Forget what was brought; no model is loaded any more."""


def _marks(folder: Path) -> Iterator[FileMark]:
    """Yield the files of a model, but for hidden ones.

    Raises:
        OSError: the folder cannot be read.
        SourceError: it holds more files than a model has.
    """
    for count, (path, entry) in enumerate(_files(folder, "", _MAX_DEPTH)):
        if count == MAX_FILES:
            raise SourceError(f"{folder} holds more than {MAX_FILES} files; expected the files of one model")
        try:
            status = entry.stat()
        except FileNotFoundError:  # deleted since, or a link that leads nowhere
            continue
        yield FileMark(path, status.st_size, f"{status.st_mtime_ns}-{status.st_ino}")


def _files(folder: Path | str, prefix: str, depth: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _NOT_FILES:
                continue
            if not entry.is_dir():
                yield prefix + entry.name, entry
            elif depth:
                yield from _files(entry.path, f"{prefix}{entry.name}/", depth - 1)
