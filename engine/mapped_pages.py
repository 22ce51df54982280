"""Pages of mapped files that are not needed for now."""

import mmap
from typing import Any

import numpy as np

from engine.dtypes import Array

_LEAST_BYTES = 1 << 16
"""Bytes below which it is not worth asking the system."""


def let_go(data: Array | memoryview) -> None:
    """Let the system take back the memory of the mapped file that bytes lie in; what is read again comes back.

    Does nothing where they lie in memory of the process's own, or are few.
    """
    if data.nbytes < _LEAST_BYTES:
        return
    base: Any = data
    while isinstance(base, np.ndarray):
        base = base.base
    owner = base.obj if isinstance(base, memoryview) else base
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)
