"""What this process may use of the machine: CPUs and memory, and what limits them."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from service.config.cgroups import cpu_quota, memory_limit


@dataclass(frozen=True, slots=True)
class Machine:
    """CPUs and memory.

    Attributes:
        cpus: how many threads may compute at the same time, at least 1.
        cpus_from: what limits them, in words.
        memory: bytes; None where the platform does not say.
        memory_from: what limits it, in words.
    """

    cpus: int
    cpus_from: str
    memory: int | None
    memory_from: str

    def part(self, parts: int) -> "Machine":
        """Return what each of several processes may use that share it equally: at least one CPU."""
        if parts == 1:
            return self
        share = f"one of {parts} equal parts of "
        memory = None if self.memory is None else self.memory // parts
        return Machine(max(1, self.cpus // parts), share + self.cpus_from, memory, share + self.memory_from)


def read_machine(root: Path = Path("/"), cores: int | None = None, ram: int | None = None) -> Machine:
    """Find out what this process may use.

    A quota is rounded down: threads that have used up their quota stand still, with all requests that they hold.

    Args:
        root: where `/proc` and `/sys` are read.
        cores: how many cores the process may run on; None to ask the system.
        ram: bytes of memory; None to ask the system.
    """
    cpus, cpus_from = (_cores() if cores is None else cores), "the cores that this process may run on"
    quota = cpu_quota(root)
    if quota is not None and quota.value < cpus:
        cpus, cpus_from = max(1, int(quota.value)), f"a quota of {quota.value:g} CPUs in {quota.file}"
    limits = list(_memory_limits(root, ram))
    memory, memory_from = min(limits) if limits else (None, "a platform that does not report it")
    return Machine(cpus, cpus_from, memory, memory_from)


@cache
def _read_once() -> Machine:
    return read_machine()


_given: list[Machine] = []


def set_machine(machine: Machine) -> None:
    """Have this process use no more than it was given."""
    _given[:] = [machine]


def share_machine(processes: int) -> None:
    """Note that this process is one of several, which share what there is."""
    set_machine(_read_once().part(processes))


def this_machine() -> Machine:
    """Return what this process may use; it is found out once."""
    return _given[0] if _given else _read_once()


def _memory_limits(root: Path, ram: int | None) -> Iterator[tuple[int, str]]:
    """Yield the limits of memory: bytes, and what sets them."""
    installed = _ram() if ram is None else ram
    if installed:
        yield installed, "the memory of the machine"
    limit = memory_limit(root)
    if limit is not None:
        yield int(limit.value), f"the limit in {limit.file}"
    space = _address_space()
    if space is not None:
        yield space, "the limit of the address space (ulimit -v or -d)"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # platforms that cannot pin a process to cores


def _ram() -> int:
    """Return the bytes of memory that are installed; 0 where the platform does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def _address_space() -> int | None:
    """Return the limit of the address space, or of what is data in it, in bytes; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415  # there is none on Windows

    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min((limit for limit in limits if limit != resource.RLIM_INFINITY), default=None)
