"""Puts the folder of a model into a repository at once: whoever looks sees all of it, the one before, or none."""

import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.export.errors import ExportError
from service.repository.files import MODEL_NAME

_CURRENT_FOLDER = -100
_EXCHANGE = 2
"""Constants of Linux: AT_FDCWD and RENAME_EXCHANGE."""


def check_place(folder: Path, *, force: bool) -> None:
    """Check that a model may come to a folder.

    Raises:
        ExportError: something is there, and is not to be replaced; or it is no folder; or no server takes its name.
    """
    if folder.name.startswith(".") or not folder.name:
        raise ExportError(
            f"{folder.name!r} is not a model name: folders that begin with a dot are not served"
        )
    if not MODEL_NAME.fullmatch(folder.name):
        raise ExportError(
            f"{folder.name!r} is not a model name: expected letters, digits, '.', '_' and '-'; --name gives another"
        )
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder} is a file; expected a folder, or nothing")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise ExportError(f"{folder} exists; --force replaces it, --name gives the model another name")


@contextmanager
def staged(folder: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty folder beside a model's own, hidden, which takes its place once the block has ended well.

    Raises:
        ExportError: the folder came into being meanwhile, or cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent)
    except OSError as error:
        raise ExportError(f"{folder.parent} cannot be written: {error.strerror}") from error
    with made as name:
        content = Path(name) / "model"
        content.mkdir()
        yield content
        check_place(folder, force=force)
        _put(content, folder)


def _put(content: Path, folder: Path) -> None:
    """Move a folder to its place; what was there comes to where it was, and is removed with that."""
    if not folder.exists() or not any(folder.iterdir()):
        content.replace(folder)  # takes the place of an empty folder as well
    elif not _exchanged(content, folder):
        old = content.with_name("old")
        folder.rename(old)
        try:
            content.rename(folder)
        except OSError:
            old.rename(folder)
            raise
        shutil.rmtree(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system can."""
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        names = (os.fsencode(one), os.fsencode(other))
        return int(rename(_CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], _EXCHANGE)) == 0
    return False
