"""File trees as `/proc` and `/sys/fs/cgroup` look to a process in a container."""

from collections.abc import Mapping
from pathlib import Path

UNLIMITED_V1 = "9223372036854771712\n"
V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 {cpu} /sys/fs/cgroup/cpu,cpuacct ro,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 {memory} /sys/fs/cgroup/memory ro,nosuid shared:12 master:2 - cgroup cgroup rw,memory
"""
V2_MOUNTS = "29 23 0:26 {top} /sys/fs/cgroup ro,nosuid,nodev - cgroup2 cgroup rw,nsdelegate\n"


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write files by their absolute names below a folder, and return the folder."""
    for name, text in files.items():
        path = root / name.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def v2(root: Path, files: Mapping[str, str], *, path: str = "/", top: str = "/") -> Path:
    """Write a tree of version 2.

    Args:
        root: the folder to write into.
        files: what lies below `/sys/fs/cgroup`.
        path: the cgroup of the process.
        top: the cgroup that is mounted.
    """
    proc = {"/proc/self/cgroup": f"0::{path}\n", "/proc/self/mountinfo": V2_MOUNTS.format(top=top)}
    return write_tree(root, proc | {f"/sys/fs/cgroup/{name}": text for name, text in files.items()})


def v1(root: Path, files: Mapping[str, str], *, path: str = "/", top: str = "/") -> Path:
    """Write a tree of version 1, with the arguments of `v2`."""
    groups = f"9:memory:{path}\n4:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::/\n"
    proc = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": V1_MOUNTS.format(cpu=top, memory=top)}
    return write_tree(root, proc | {f"/sys/fs/cgroup/{name}": text for name, text in files.items()})


def quota_v1(folder: str, quota: str, period: str = "100000\n") -> dict[str, str]:
    """Return the files of a CPU quota of version 1."""
    place = f"cpu,cpuacct/{folder}".rstrip("/")
    return {f"{place}/cpu.cfs_quota_us": quota, f"{place}/cpu.cfs_period_us": period}
