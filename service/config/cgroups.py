"""The limits that a container, or a systemd unit, sets to this process: cgroups of Linux, version 1 and 2.

Formats: cgroups(7), proc(5), and Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_UNLIMITED_BYTES = 1 << 60
"""Version 1 says "no limit" with the largest number of pages that the kernel can count, which differs by platform."""
_MAX_CHARACTERS = 1 << 20
_MEMORY_V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
_MEMORY_V2 = "memory.max", "memory.current", "inactive_file"
"""The files of limit and use, and the line of `memory.stat` with what is kept of files that nobody uses."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class CgroupLimit:
    """A limit and where it was found.

    Attributes:
        value: CPUs or bytes.
        file: the file that holds it.
    """

    value: float
    file: PurePosixPath


@dataclass(frozen=True, slots=True)
class _Mount:
    """A mounted hierarchy of cgroups: where, the cgroup at its top, and the controllers; version 2 has none here."""

    point: PurePosixPath
    top: PurePosixPath
    controllers: frozenset[str] | None


def cpu_quota(root: Path = Path("/")) -> CgroupLimit | None:
    """Return the least CPU quota of this process's cgroup and those above it, in CPUs; None where there is none.

    Args:
        root: what is read in place of the file system's root.
    """
    found = []
    for folder, is_v2 in _folders(root, "cpu"):
        if is_v2:
            file = folder / "cpu.max"
            quota, _, period = _read(root, file).strip().partition(" ")
        else:
            file = folder / "cpu.cfs_quota_us"
            quota, period = _read(root, file).strip(), _read(root, folder / "cpu.cfs_period_us").strip()
        if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
            found.append(CgroupLimit(int(quota) / int(period), file))
    return min(found, key=lambda limit: limit.value, default=None)


def memory_limit(root: Path = Path("/")) -> CgroupLimit | None:
    """Return the least memory limit of this process's cgroup and those above it, in bytes; None where there is none.

    Args:
        root: what is read in place of the file system's root.
    """
    found = []
    for folder, is_v2 in _folders(root, "memory"):
        for name in ("memory.max", "memory.high") if is_v2 else ("memory.limit_in_bytes",):
            text = _read(root, folder / name).strip()
            if text.isdecimal() and 0 < int(text) < _UNLIMITED_BYTES:
                found.append(CgroupLimit(int(text), folder / name))
    return min(found, key=lambda limit: limit.value, default=None)


def memory_left(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process's cgroup, or one above it, may still use; None where there is no limit.

    Pages of files that are not in use count as free: the system takes them back before it ends a process.

    Args:
        root: what is read in place of the file system's root.
    """
    found = []
    for folder, is_v2 in _folders(root, "memory"):
        limit, used, cached = _MEMORY_V2 if is_v2 else _MEMORY_V1
        most, now = _read(root, folder / limit).strip(), _read(root, folder / used).strip()
        if most.isdecimal() and now.isdecimal() and int(most) < _UNLIMITED_BYTES:
            statistics = _read(root, folder / "memory.stat")
            idle = re.search(rf"^{cached} ([0-9]+)$", statistics, re.MULTILINE)
            found.append(int(most) - int(now) + (int(idle[1]) if idle else 0))
    return min(found, default=None)


def _folders(root: Path, controller: str) -> Iterator[tuple[PurePosixPath, bool]]:
    """Yield the folders of this process's cgroups with a controller, each and those above it, and whether of version 2.

    A container sees its own cgroup as the top of what is mounted, or as a folder there, as its runtime has it.
    """
    mounts = list(_mounts(root))
    for line in _read(root, PurePosixPath("/proc/self/cgroup")).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        is_v2 = not controllers
        if not is_v2 and controller not in controllers.split(","):
            continue
        for mount in mounts:
            if mount.controllers is None if is_v2 else controller in (mount.controllers or ()):
                below = _below(PurePosixPath(path), mount.top)
                yield from (
                    (folder, is_v2) for folder in (mount.point / below, *_parents(mount.point, below))
                )


def _below(path: PurePosixPath, top: PurePosixPath) -> PurePosixPath:
    """Return a cgroup as seen from the top of a mount: the top itself where it lies outside."""
    if ".." in path.parts or not path.is_relative_to(top):
        return PurePosixPath()
    return path.relative_to(top)


def _parents(point: PurePosixPath, below: PurePosixPath) -> list[PurePosixPath]:
    return [point / parent for parent in below.parents]


def _mounts(root: Path) -> Iterator[_Mount]:
    """Yield what `/proc/self/mountinfo` lists of cgroups."""
    for line in _read(root, PurePosixPath("/proc/self/mountinfo")).splitlines():
        place, _, kind = line.partition(" - ")
        fields, (name, *options) = place.split(), kind.split() or [""]
        if name not in ("cgroup", "cgroup2") or len(fields) < 5 or not options:
            continue
        top, point = (PurePosixPath(_unescape(field)) for field in fields[3:5])
        yield _Mount(point, top, None if name == "cgroup2" else frozenset(options[-1].split(",")))


def _unescape(text: str) -> str:
    """Undo how spaces and the like are written in `/proc`: as three octal digits."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def _read(root: Path, file: PurePosixPath) -> str:
    """Return what a file holds; nothing where there is no such file, or it cannot be read."""
    try:
        with (root / file.relative_to("/")).open(encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(_MAX_CHARACTERS)
    except (OSError, ValueError):
        return ""
