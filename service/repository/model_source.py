"""Where models come from: a folder of this machine, or whatever brings them into one."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from service.repository.fingerprint import Fingerprint
from service.repository.load_progress import Step, go_on


class SourceError(Exception):
    """A source cannot be reached, or what was asked of it cannot be had now; the message says why."""


class Refusal(NamedTuple):
    """Files that can be no model.

    Attributes:
        files: the files.
        reason: why not.
    """

    files: Fingerprint
    reason: str


class ModelSource(ABC):
    """Knows which models there are, and where on this machine their files are.

    A model is *taken* once it is to be served as a listing showed it. Any thread may call any method; but either
    `take` and `drop` are called, by one thread, or `find`, by any.

    Attributes:
        taken: the files of each model that was taken, as they were listed then.
        refused: the models that `prepare` found and could not take, as they will stay until they change.
    """

    def __init__(self) -> None:
        self.taken: dict[str, Fingerprint] = {}
        self.refused: dict[str, Refusal] = {}

    @abstractmethod
    def prepare(self, step: Step = go_on) -> None:
        """Take all models that there are; called once, before the first load.

        Raises:
            SourceError: that cannot be done now, and may be possible later.
            ModelFilesError, OSError: as for `folders`.
            LoadStoppedError: `step` raised it.
        """

    @abstractmethod
    def folders(self) -> dict[str, Path]:
        """Return the folders of the models that may be loaded by name, in order of name.

        Raises:
            ModelFilesError, OSError: the folder does not exist or holds no model.
        """

    @abstractmethod
    def list(self) -> Mapping[str, Fingerprint]:
        """Return what there is now: the files of each model by its name.

        Raises:
            SourceError: that cannot be found out, or there is no model.
        """

    @abstractmethod
    def take(self, name: str, files: Fingerprint, step: Step = go_on) -> None:
        """Take a model, new or changed: from now on `folders` leads to these files of it.

        Args:
            name: the model.
            files: what `list` returned of it.
            step: called before each part that may take seconds.

        Raises:
            SourceError: the files cannot be had now, and may be later.
            ModelFilesError: what is listed can be no model, and will not be one until it changes.
            LoadStoppedError: `step` raised it.
        """

    def check(self, name: str) -> None:
        """Check that the files of a model, which was just loaded, are still those that it was taken with.

        Raises:
            SourceError: they are not: what was loaded may be of both.
        """
        del name

    def drop(self, name: str) -> None:
        """Note that a model is gone."""
        self.taken.pop(name, None)
        self.refused.pop(name, None)

    def find(self, name: str, step: Step = go_on) -> None:
        """Take a model as it is now, or note that it is gone, before a load that a client asked for.

        Raises:
            SourceError, ModelFilesError, LoadStoppedError: as for `take`.
        """
        del name, step

    def tidy(self, used: Collection[Path]) -> None:
        """Forget files that are neither of models as they were taken last, nor among those that are in use."""
        del used

    def close(self) -> None:
        """Forget all models and the files that were brought; no model is loaded any more."""
        for name in tuple(self.taken):
            self.drop(name)
        self.tidy(())
