"""What another process uses, from /proc."""

import os
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses at one moment.

    Attributes:
        threads: its threads.
        files: its open file descriptors.
        memory: bytes of resident memory.
    """

    threads: int
    files: int
    memory: int


def usage_of(pid: int) -> Usage:
    """Return what a process uses now."""
    process = Path(f"/proc/{pid}")
    status = process.joinpath("status").read_text()
    return Usage(
        threads=_number(status, r"Threads:\s+(\d+)"),
        files=len(os.listdir(process / "fd")),  # noqa: PTH208  # only their number is wanted
        memory=_number(status, r"VmRSS:\s+(\d+) kB") << 10,
    )


def _number(status: str, pattern: str) -> int:
    found = re.search(pattern, status)
    if found is None:
        raise ValueError(f"no {pattern} in the process's status")
    return int(found[1])
