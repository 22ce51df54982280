"""Files of stores on this machine, by what is in them, so that each is fetched once.

    objects/SHA256              the bytes of a file
    names/SHA256 OF AN ORIGIN   the SHA-256 of the file that this origin (a URL, a path, a tag and a size) stands for
    views/RANDOM/               what one process serves: hard links to objects, and files that are being fetched
    views/RANDOM.lock           locked as long as that process lives; the next one deletes what others left behind

Any number of processes of one user may share a cache.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from service.repository.load_progress import Step, go_on

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_READ_BYTES = 1 << 20
_LOCK_SECONDS = 0.2


class CacheError(Exception):
    """The folder cannot hold a cache; the message says why."""


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder that files are kept in: beside compiled code, where `KUIPER_CACHE` names a folder for that.

    Raises:
        CacheError: the environment names no home.
    """
    if environment.get("KUIPER_CACHE"):
        return Path(environment["KUIPER_CACHE"]) / "store"
    caches = environment.get("XDG_CACHE_HOME")
    if caches and Path(caches).is_absolute():
        return Path(caches) / "kuiper-store"
    home = environment.get("HOME")
    if not home:
        raise CacheError("the environment names no home; set KUIPER_CACHE to a folder")
    return Path(home) / ".cache" / "kuiper-store"


class FileCache:
    """A folder of files that were fetched.

    Args:
        folder: the folder; made if there is none.
        most_bytes: bytes of files that are kept besides those that are served.

    Attributes:
        view: a folder of this process alone, on the same file system; deleted by `close`, or by the next process.
        most_bytes: the same.

    Raises:
        CacheError: the folder cannot be made or written, or others than this user may write to it.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._folder = folder
        self._objects, self._names = folder / "objects", folder / "names"
        views = folder / "views"
        try:
            for made in (folder, self._objects, self._names, views):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)
                _check_owner(made)
            _delete_left_behind(views)
            self.view, self._lock = _new_view(views)
        except OSError as error:
            raise CacheError(f"{folder} cannot keep files of a store: {error.strerror or error}") from error

    def close(self) -> None:
        """Delete the view of this process."""
        shutil.rmtree(self.view, ignore_errors=True)
        self.view.with_suffix(".lock").unlink(missing_ok=True)
        os.close(self._lock)

    @contextmanager
    def alone(self, step: Step = go_on) -> Iterator[None]:
        """Keep other processes from fetching meanwhile, which would fetch the same files.

        Args:
            step: called repeatedly while another process fetches; can end the wait.

        Raises:
            OSError: the folder cannot be written.
        """
        descriptor = os.open(self._folder / "fetching.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    step("waiting for another process that fetches models")
                    time.sleep(_LOCK_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def find(self, origin: str) -> Path | None:
        """Return the file that was kept for an origin, if it is whole."""
        try:
            digest = (self._names / _digest_of(origin)).read_text()
            path = self._objects / digest
            if len(digest) != 64 or path.is_symlink() or sha256_of(path) != digest:
                path.unlink()
                return None
            os.utime(path)  # it is in use: others are deleted before it
        except (OSError, ValueError):
            return None
        return path

    def keep(self, origin: str, fetched: Path, digest: str) -> Path:
        """Move a file that was fetched into `view` to where it is found again; returns its place.

        Args:
            origin: where it came from.
            fetched: the file.
            digest: its SHA-256.

        Raises:
            OSError: the disk is full, or the like.
        """
        kept = self._objects / digest
        fetched.chmod(0o644)
        fetched.replace(kept)
        name = self.view / "name"
        name.write_text(digest)
        name.replace(self._names / _digest_of(origin))
        return kept

    def make_room(self, needed: int) -> None:
        """Delete the files that nobody serves and that were not used for longest, where more are kept than may be."""
        found = [(path, path.stat()) for path in _listed(self._objects)]
        unused = sorted(
            ((status.st_mtime_ns, status.st_size, path) for path, status in found if status.st_nlink == 1),
        )
        kept = sum(size for _, size, _ in unused) + needed
        for _, size, path in unused:
            if kept <= self.most_bytes:
                break
            path.unlink(missing_ok=True)
            kept -= size
        digests = {path.name for path in _listed(self._objects)}
        for name in _listed(self._names):
            with suppress(OSError, ValueError):
                if name.read_text() not in digests:
                    name.unlink(missing_ok=True)


def link(kept: Path, place: Path) -> None:
    """Put a file of the cache to a second place, without a copy where the file system knows links.

    Raises:
        OSError: the disk is full, or the like.
    """
    try:
        os.link(kept, place)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(kept, place)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest_of(origin: str) -> str:
    return hashlib.sha256(origin.encode(errors="surrogateescape")).hexdigest()


def _check_owner(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise CacheError(f"{folder} is a link; expected a folder")
    if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_MAY_WRITE:
        raise CacheError(
            f"{folder} belongs to another user, or others may write to it; expected a folder of your own"
        )


def _new_view(views: Path) -> tuple[Path, int]:
    while True:
        view = views / secrets.token_hex(8)
        lock = view.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if lock.exists():
            view.mkdir(mode=0o700)
            return view, descriptor
        os.close(descriptor)  # another process has taken it for one that was left behind


def _delete_left_behind(views: Path) -> None:
    """Delete the views of processes that have ended; one without a lock was written to while it was deleted."""
    for view in [path for path in views.iterdir() if path.suffix != ".lock"]:
        if not view.with_suffix(".lock").exists():  # it is made before its view, and deleted after it
            shutil.rmtree(view, ignore_errors=True)
    for lock in views.glob("*.lock"):
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink(missing_ok=True)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)


def _listed(folder: Path) -> Iterable[Path]:
    return list(folder.iterdir())
