"""Compile cache on disk, shared with later and concurrent processes.

It holds the machine code of kernels and the verification cache (`program/verification_cache.py`). `KUIPER_CACHE` sets
the folder, by default in the user's cache folder; empty disables it. Files are written whole or not at all, and what is
read has to be what was written, by the user or by root. A folder that cannot be read, written or trusted is not used,
which only costs time.
"""

import hashlib
import logging
import mmap
import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from engine.compiler.emit.target import llvm_versions
from engine.import_time import IMPORTED_NS
from engine.pnnx.mapped_pages import map_file

VARIABLE = "KUIPER_CACHE"
"""Environment variable that names the folder."""
MAX_BYTES = 256 << 20
"""Maximum bytes of cached code; beyond it, the oldest files are deleted."""

_KEPT_PART = 0.75
"""Part of `MAX_BYTES` that is left after files were deleted."""
_MEASURED_PART = 1 / 16
"""Written share of the maximum after which the folder is measured again, as other processes write to it too."""
_DIGEST_BYTES = hashlib.sha256().digest_size
CODE, VERIFIED = ".code", ".verified"
"""Suffixes of the cached files."""
_TEMPORARY = "tmp"
_WRITING_SECONDS = 3600.0
_ENGINE = Path(__file__).parents[2]
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH

_logger = logging.getLogger(__name__)


def code_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the cache folder; None if caching is disabled.

    Args:
        environment: the environment variables: `KUIPER_CACHE`, or `XDG_CACHE_HOME` and `HOME`.
    """
    named = environment.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    caches = environment.get("XDG_CACHE_HOME")
    if caches and Path(caches).is_absolute():
        return Path(caches) / "kuiper"
    home = environment.get("HOME")
    return Path(home) / ".cache" / "kuiper" if home else None


class CodeStore:
    """Cached code and verification results by key. Thread-safe and multi-process-safe; never raises OSError.

    Args:
        folder: the cache folder; None for no cache.
        max_bytes: maximum bytes of the cache.
    """

    def __init__(self, folder: Path | None, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._unmeasured = max_bytes  # bytes written since the folder was measured
        self._is_writable = True

    @property
    def is_on(self) -> bool:
        """Whether caching is enabled."""
        return self._folder is not None

    @property
    def folder(self) -> Path | None:
        """The cache folder; None for no cache, and after the first failed write."""
        return self._folder if self._is_writable else None

    def load(self, key: str, kind: str = CODE) -> bytes | None:
        """Return the cached bytes of a key; None without a trusted file."""
        if self._folder is None:
            return None
        try:
            with _opened(self._folder / f"{key}{kind}") as file:
                data = file.read()
        except OSError:
            return None
        digest, kept = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        return kept if digest == hashlib.sha256(kept).digest() else None

    def save(self, key: str, data: bytes, kind: str = CODE) -> None:
        """Store code or a verification result, if possible."""
        self.save_parts(f"{key}{kind}", [hashlib.sha256(data).digest(), data])

    def map(self, name: str) -> mmap.mmap | None:
        """Return a file that `save_parts` wrote, mapped for reading; None where there is none that can be trusted."""
        if self._folder is None:
            return None
        try:
            with _opened(self._folder / name) as file:
                return map_file(file)
        except (OSError, ValueError):  # a file of no bytes cannot be mapped
            return None

    def copy(self, parts: Iterable[bytes]) -> mmap.mmap | None:
        """Return bytes in a file without a name, mapped for reading; None where there can be no such file.

        They take memory only as far as they are being read.
        """
        if self._folder is None or not self._is_writable:
            return None
        try:
            with tempfile.TemporaryFile(dir=_prepared(self._folder)) as file:
                file.writelines(parts)
                file.flush()
                return map_file(file)
        except (OSError, ValueError):  # as above
            return None

    def save_parts(self, name: str, parts: Iterable[bytes | memoryview]) -> None:
        """Store a file of these parts, one after the other, if possible."""
        if self._folder is None or not self._is_writable:
            return
        try:
            self._write(self._folder, name, parts)
        except OSError as error:
            _logger.info("compiled code is not cached: %s", error)
            self._is_writable = False  # existing files can still be read

    def _write(self, folder: Path, name: str, parts: Iterable[bytes | memoryview]) -> None:
        descriptor, other_name = tempfile.mkstemp(dir=_prepared(folder), prefix=_TEMPORARY)
        temporary = Path(other_name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
                written = file.tell()
            temporary.chmod(0o644)  # others may use what only its owner writes
            temporary.replace(folder / name)
        except BaseException:
            temporary.unlink()
            raise
        self._make_room(folder, written)

    def _make_room(self, folder: Path, written: int) -> None:
        """Delete the oldest files where there is too much: at the first write, and after each share of the maximum."""
        self._unmeasured += written
        if self._unmeasured < self._max_bytes * _MEASURED_PART:
            return
        self._unmeasured = 0
        files = sorted((status.st_mtime_ns, status.st_size, path) for path, status in _files(folder))
        total = sum(size for _, size, _ in files)
        kept = self._max_bytes if total <= self._max_bytes else self._max_bytes * _KEPT_PART
        for _, size, path in files:
            if total <= kept:
                break
            path.unlink(missing_ok=True)
            total -= size


def code_key(description: str) -> str:
    """Return the key of code: of what it does, and of all that decides what code that becomes.

    Args:
        description: the kernel with its shape, and the target.
    """
    parts = (description, llvm_versions(), _source_digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _source_digest() -> str:
    """Return a digest of the engine's own source: with another, a kernel of the same shape is other code."""
    return _digest_of(_ENGINE, IMPORTED_NS)


def _digest_of(folder: Path, imported_ns: int) -> str:
    """Return a digest of the source below a folder, as it was imported.

    If a file has changed since, it is unknown which version this process runs: the digest is then unique, so that no
    code is shared with other processes.

    Args:
        folder: the folder.
        imported_ns: when its modules began to be imported.
    """
    digest = hashlib.sha256()
    top = os.fspath(folder)
    for path in sorted(_sources(top)):
        digest.update(path.removeprefix(top).encode())
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # hundreds of files, in every start
            status = os.fstat(file.fileno())
            digest.update(file.read())
        if max(status.st_mtime_ns, status.st_ctime_ns) >= imported_ns:
            digest.update(os.urandom(_DIGEST_BYTES))
    return digest.hexdigest()


def _sources(top: str) -> Iterator[str]:
    """Yield the paths of all modules below a folder, in any order."""
    for folder, _, names in os.walk(top):
        yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))  # noqa: PTH118  # as above


def _files(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    for path in folder.iterdir():
        try:
            status = path.stat()
            if not path.name.startswith(_TEMPORARY):
                found += [(path, status)] if stat.S_ISREG(status.st_mode) else []
            elif status.st_mtime < time.time() - _WRITING_SECONDS:
                path.unlink()  # its writer was killed
        except FileNotFoundError:  # another process has deleted it
            continue
    return found


def _opened(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened, or others than this user and root may have written to it or to its folder.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and _is_trusted(status) and _is_trusted(path.parent.stat()):
        return file
    file.close()
    raise PermissionError(f"{path} is no file that only this user and root may write to")


def _prepared(folder: Path) -> Path:
    """Return a folder that files may be written to, made where it is not there.

    Raises:
        OSError: it cannot be made, or others may write to it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_trusted(folder.stat()):
        raise PermissionError(f"{folder} belongs to another user, or others may write to it")
    return folder


def _is_trusted(status: os.stat_result) -> bool:
    """Return whether only this user and root can have written something."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_MAY_WRITE


@lru_cache(maxsize=1)
def code_store() -> CodeStore:
    """Return the store of this process, in the folder that its environment names at first."""
    return CodeStore(code_folder())
