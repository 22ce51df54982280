"""Reads small files that somebody else may have put there: no pipe, device or socket, and nothing without end."""

import os
import stat
from pathlib import Path

MAX_BYTES = 16 << 20
"""Maximum bytes of a configuration or a list of labels."""

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def read_text(path: Path, encoding: str = "utf-8", limit: int = MAX_BYTES) -> str:
    """Return the text of a regular file; others are not opened, as that may wait for ever.

    Args:
        path: the file.
        encoding: of its text.
        limit: maximum bytes that are read.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it is not a regular file, too large, or cannot be read.
        UnicodeDecodeError: it is not text in that encoding.
    """
    _check(path.stat(), limit)
    # should the file be another one by now, it is not waited for either
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(descriptor, "rb") as file:
        _check(os.fstat(descriptor), limit)
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(f"it has more than {limit} bytes")
    return content.decode(encoding)


def _check(status: os.stat_result, limit: int) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise OSError(f"it is {_KINDS.get(kind, 'no file')}")
    if status.st_size > limit:
        raise OSError(f"it has {status.st_size} bytes; the maximum is {limit}")
