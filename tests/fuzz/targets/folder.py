"""A folder for the files of one process; the next input overwrites them."""

import tempfile
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def _held() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="fuzz-")


def folder() -> Path:
    """Return the folder; it goes with the process."""
    return Path(_held().name)
