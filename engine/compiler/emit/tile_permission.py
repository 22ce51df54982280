"""Linux's permission for a process to use AMX, whose registers take 8 KiB per thread."""

import ctypes
import platform
import sys
from functools import lru_cache

_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA = 158, 0x1023, 18
"""Numbers of x86-64 Linux: the system call, its command ARCH_REQ_XCOMP_PERM, and the state XFEATURE_XTILEDATA."""


@lru_cache(maxsize=1)
def may_use_tiles() -> bool:
    """Request permission to use AMX tiles, once per process; return whether it was granted.

    It is refused where Linux does not know AMX, or where a thread has a signal stack too small for its registers.
    """
    if sys.platform != "linux" or platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    return bool(call(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_STATE, _TILE_DATA))) == 0)
