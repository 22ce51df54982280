"""Models of stores on this machine: a folder for each state of a model, which is complete once it has its name.

    fetching.lock   locked by the process that fetches or deletes
    part/           what it fetches
    STATE/MODEL/    the files; STATE is locked, shared, by the processes that use it

Any number of processes of one user may share a cache.
"""

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from service.config.setting_file import SettingsError
from service.repository.files import ModelFilesError
from service.repository.fingerprint import FileMark
from service.repository.load_progress import Step, go_on
from service.stores.checksums import check_checksums

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LOCK_SECONDS = 0.2


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the cache: beside compiled code, where `KUIPER_CACHE` names a folder for that.

    Raises:
        SettingsError: the environment names no home.
    """
    if environment.get("KUIPER_CACHE"):
        return Path(environment["KUIPER_CACHE"]) / "store"
    caches = environment.get("XDG_CACHE_HOME")
    if caches and Path(caches).is_absolute():
        return Path(caches) / "kuiper-store"
    home = environment.get("HOME")
    if not home:
        raise SettingsError("KUIPER_CACHE: the environment names no home; set KUIPER_CACHE to a folder")
    return Path(home) / ".cache" / "kuiper-store"


class StateCache:
    """A folder of states of models.

    Args:
        folder: the folder; made if there is none.
        max_bytes: bytes of states that are cached besides those in use.

    Raises:
        SettingsError: the folder cannot be made, or others than this user may write to it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._folder = folder
        self._used: dict[Path, int] = {}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except OSError as error:
            raise SettingsError(
                f"KUIPER_CACHE: {folder} cannot keep files of a store: {error.strerror or error}"
            ) from error
        if not stat.S_ISDIR(status.st_mode):
            raise SettingsError(f"KUIPER_CACHE: {folder} is a link; expected a folder")
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
            problem = f"{folder} belongs to another user, or others may write to it"
            raise SettingsError(f"KUIPER_CACHE: {problem}; expected a folder of your own")

    @contextmanager
    def alone(self, step: Step = go_on) -> Iterator[None]:
        """Exclude other processes and threads, which would fetch the same files.

        All other methods but `keep` are called meanwhile.

        Args:
            step: called repeatedly while another process fetches; can end the wait.

        Raises:
            OSError: the folder cannot be written.
        """
        descriptor = os.open(self._folder / "fetching.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(descriptor):
                step("waiting for another process that fetches models")
                time.sleep(_LOCK_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def find(self, state: str, model: str, files: Collection[FileMark]) -> Path | None:
        """Return the folder of a state; None if it is not here, or differs from a model's sizes or `checksums`."""
        folder = self._folder / state
        try:
            if all((folder / model / file.path).lstat().st_size == file.size for file in files):
                check_checksums(folder / model, [file.path for file in files])
                return folder
        except (OSError, ModelFilesError):
            pass
        shutil.rmtree(folder, ignore_errors=True)
        return None

    def begin(self, size: int) -> Path:
        """Return an empty folder to fetch a state into; evicts others if `size` bytes more need it."""
        part = self._folder / "part"
        shutil.rmtree(part, ignore_errors=True)  # of a process that ended while it fetched
        self._evict(size)
        part.mkdir(mode=0o700)
        return part

    def complete(self, part: Path, state: str) -> Path:
        """Give what was fetched its name; returns its folder.

        Raises:
            OSError: the disk is full, or the like.
        """
        return part.rename(self._folder / state)

    def use(self, folder: Path) -> None:
        """Keep all processes from evicting a state, until `keep` is called without it."""
        os.utime(folder)
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if folder in self._used:
            os.close(self._used[folder])
        self._used[folder] = descriptor

    def keep(self, folders: Collection[Path]) -> None:
        """Use these states on, and no others: they may be evicted."""
        for folder in self._used.keys() - folders:
            os.close(self._used.pop(folder))

    def _evict(self, needed: int) -> None:
        """Delete unused states, the least recently used first, while they and `needed` bytes are too many."""
        folders = [folder for folder in self._folder.iterdir() if folder.is_dir() and not _is_used(folder)]
        sizes = {folder: _size(folder) for folder in folders}
        kept = needed + sum(sizes.values())
        for folder in sorted(folders, key=lambda folder: folder.stat().st_mtime_ns):
            if kept <= self.max_bytes:
                break
            shutil.rmtree(folder, ignore_errors=True)
            kept -= sizes[folder]


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_used(folder: Path) -> bool:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return not _try_lock(descriptor)
    finally:
        os.close(descriptor)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())
