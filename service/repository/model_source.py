"""Where models come from: a folder of this machine, or whatever brings them into one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from service.repository.fingerprint import Fingerprint
from service.repository.load_progress import Step, go_on


class SourceError(Exception):
    """A source cannot be reached, or what was asked of it cannot be had now; the message says why."""


class ModelSource(Protocol):
    """Knows which models there are, and where on this machine their files are.

    A model is *taken* once it is to be served as a listing showed it. Only one thread at a time calls what changes
    that: `prepare`, `take` and `drop`.
    """

    def prepare(self, step: Step = go_on) -> None:
        """Take all models that there are; called once, before the first load.

        Raises:
            SourceError: that cannot be done now, and may be possible later.
            ModelFilesError, OSError: as for `folders`.
            LoadStoppedError: `step` raised it.
        """

    def folders(self) -> dict[str, Path]:
        """Return the folders of the models that may be loaded by name, in order of name.

        Raises:
            ModelFilesError, OSError: the folder does not exist or holds no model.
        """

    def list(self) -> Mapping[str, Fingerprint]:
        """Return what there is now: the files of each model by its name.

        Raises:
            SourceError: that cannot be found out, or there is no model.
        """

    @property
    def taken(self) -> Mapping[str, Fingerprint]:
        """The files of each model that was taken, as they were listed then."""

    def take(self, name: str, files: Fingerprint, step: Step = go_on) -> None:
        """Take a model, new or changed: from now on `folders` leads to these files of it.

        Args:
            name: the model.
            files: what `list` returned of it.
            step: told before each part that may take seconds.

        Raises:
            SourceError: the files cannot be had now, and may be later.
            ModelFilesError: what is listed can be no model, and will not be one until it changes.
            LoadStoppedError: `step` raised it.
        """

    def drop(self, name: str) -> None:
        """Note that a model is gone."""
