"""Files of stores on this machine, shared by processes, each of which serves hard links to them.

    fetching.lock       locked by the process that fetches or deletes
    part                the file that it fetches
    files/KEY           a file of a store; it never changes
    processes/RANDOM/   the links of a process, which keeps this folder locked

A file that a process uses has more than one link.
"""

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from service.config.setting_file import SettingsError
from service.repository.load_progress import Step

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LOCK_SECONDS = 0.2


def pool_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of the pool: beside compiled code, where `KUIPER_CACHE` names a folder for that.

    Raises:
        SettingsError: the environment names no home.
    """
    if named := environment.get("KUIPER_CACHE"):
        return Path(named, "store")
    if Path(caches := environment.get("XDG_CACHE_HOME", "")).is_absolute():
        return Path(caches, "kuiper-store")
    if home := environment.get("HOME"):
        return Path(home, ".cache", "kuiper-store")
    raise SettingsError("KUIPER_CACHE: the environment names no home; set KUIPER_CACHE to a folder")


class FilePool:
    """A folder of files, and in it the folder of this process.

    Args:
        folder: the folder; made if there is none.
        max_bytes: bytes of files that are cached besides those in use.

    Raises:
        SettingsError: the folder cannot be made, or others than this user may write to it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._folder = folder
        self._files, self._processes = folder / "files", folder / "processes"
        self._own: Path | None = None
        self._descriptor = -1
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.lstat()
        except OSError as error:
            problem = f"{folder} cannot keep files of a store: {error.strerror or error}"
            raise SettingsError(f"KUIPER_CACHE: {problem}") from error
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE or folder.is_symlink():
            problem = f"{folder} is a link, belongs to another user, or others may write to it"
            raise SettingsError(f"KUIPER_CACHE: {problem}; expected a folder of your own")

    @contextmanager
    def locked(self, step: Step) -> Iterator[None]:
        """Exclude other processes and threads, which would fetch or evict the same files.

        Args:
            step: called repeatedly while another process fetches; can end the wait.
        """
        descriptor = os.open(self._folder / "fetching.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            while not _try_lock(descriptor):
                step("waiting for another process that fetches models")
                time.sleep(_LOCK_SECONDS)
            for place in self._files, self._processes:
                place.mkdir(mode=0o700, exist_ok=True)
            yield
        finally:
            os.close(descriptor)

    def own_folder(self) -> Path:
        """Return the folder of this process, and delete those of processes that have ended; called within `locked`."""
        if self._own is None:
            for other in self._processes.iterdir():
                descriptor = os.open(other, os.O_RDONLY)
                if _try_lock(descriptor):
                    shutil.rmtree(other, ignore_errors=True)
                os.close(descriptor)
            self._own = Path(tempfile.mkdtemp(dir=self._processes))
            self._descriptor = os.open(self._own, os.O_RDONLY)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return self._own

    def get(self, key: str, size: int, fetch: Callable[[Path], None]) -> Path:
        """Return a file, which stays until another is fetched, or for as long as it has a link; called within `locked`.

        Args:
            key: the same for the same file in all processes.
            size: its bytes.
            fetch: writes it to a path; called if it is not here, or has another size.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        file, part = self._files / key, self._folder / "part"
        if not file.is_file() or file.stat().st_size != size:
            self._evict(size)
            fetch(part)
            part.replace(file)
        os.utime(file, ns=(time.time_ns(), file.stat().st_mtime_ns))  # a file is known by when it was written
        return file

    def close(self) -> None:
        """Delete the folder of this process."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            os.close(self._descriptor)
            self._own = None

    def _evict(self, needed: int) -> None:
        """Delete unused files, the least recently used first, while they and `needed` bytes are too many."""
        found = [(path, path.stat()) for path in self._files.iterdir()]
        unused = [(path, status) for path, status in found if status.st_nlink == 1]
        size = needed + sum(status.st_size for _, status in unused)
        for path, status in sorted(unused, key=lambda one: one[1].st_atime_ns):
            if size <= self.max_bytes:
                break
            path.unlink()
            size -= status.st_size


def _try_lock(descriptor: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
