"""How much memory a process took at most."""

import re
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_bytes() -> int | None:
    """Return the most bytes of memory that this process had resident so far; None where the system does not say.

    Unlike `getrusage` this does not count what the parent had when it started this process.
    """
    return parse_peak(STATUS.read_text()) if STATUS.exists() else None


def parse_peak(status: str) -> int | None:
    """Return VmHWM of the text of /proc/PID/status, in bytes."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
