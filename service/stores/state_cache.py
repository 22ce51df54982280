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
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from service.config.setting_file import SettingsError
from service.repository.files import ModelFilesError
from service.repository.fingerprint import Fingerprint
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
    caches = Path(environment.get("XDG_CACHE_HOME", ""))
    if caches.is_absolute():
        return caches / "kuiper-store"
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

    Attributes:
        folders: where the files of each model are that was taken, by name.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folders: dict[str, Path] = {}
        self._max_bytes = max_bytes
        self._folder = folder
        self._used: dict[Path, int] = {}
        self._lock = Lock()  # loads that clients ask for come on several threads
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

    def take(
        self, model: str, state: str, files: Fingerprint, fetch: Callable[[Path], None], step: Step = go_on
    ) -> None:
        """Make a state the one of a model, and keep all processes from evicting it.

        Args:
            model: the model.
            state: the same for the same files in all processes.
            files: the files of the model.
            fetch: writes them to a folder; called if they are not here, or differ from their sizes or `checksums`.
            step: called repeatedly while another process fetches; can end the wait.

        Raises:
            ModelFilesError: the files are too large, or not what their `checksums` list.
            OSError: the folder cannot be written, or the disk is full.
        """
        size = sum(file.size for file in files)
        if size > self._max_bytes:
            raise ModelFilesError(f"{size} bytes are more than store_cache_bytes, {self._max_bytes}")
        folder, part = self._folder / state, self._folder / "part"
        with self._alone(step):
            if not _is_sound(folder / model, files):
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(part, ignore_errors=True)  # of a process that ended while it fetched
                self._evict(size)
                part.mkdir(mode=0o700)
                fetch(part / model)
                check_checksums(part / model, [file.path for file in files])
                part.rename(folder)
            with self._lock:
                self._use(folder)
                self.folders[model] = folder / model

    def drop(self, model: str) -> None:
        """Forget the folder of a model; its files stay until `keep` is called without them."""
        with self._lock:
            self.folders.pop(model, None)

    def keep(self, used: Collection[Path]) -> None:
        """Let all states be evicted but those in `folders`, and those that hold files in use."""
        with self._lock:
            kept = {parent for path in (*used, *self.folders.values()) for parent in path.parents}
            for folder in self._used.keys() - kept:
                os.close(self._used.pop(folder))

    @contextmanager
    def _alone(self, step: Step) -> Iterator[None]:
        """Exclude other processes and threads, which would fetch or evict the same files."""
        descriptor = os.open(self._folder / "fetching.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(descriptor):
                step("waiting for another process that fetches models")
                time.sleep(_LOCK_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _use(self, folder: Path) -> None:
        os.utime(folder)
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if folder in self._used:  # it was fetched again
            os.close(self._used[folder])
        self._used[folder] = descriptor

    def _evict(self, needed: int) -> None:
        """Delete unused states, the least recently used first, while they and `needed` bytes are too many."""
        unused = [path for path in self._folder.iterdir() if path.is_dir() and not _is_used(path)]
        sizes = {folder: _size(folder) for folder in unused}
        for folder in sorted(unused, key=lambda folder: folder.stat().st_mtime_ns):
            if needed + sum(sizes.values()) <= self._max_bytes:
                break
            shutil.rmtree(folder, ignore_errors=True)
            del sizes[folder]


def _is_sound(folder: Path, files: Fingerprint) -> bool:
    try:
        if any((folder / file.path).lstat().st_size != file.size for file in files):
            return False
        check_checksums(folder, [file.path for file in files])
    except (OSError, ModelFilesError):
        return False
    return True


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
