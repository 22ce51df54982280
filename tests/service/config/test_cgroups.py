"""Limits of cgroups, read from file trees."""

from itertools import count, product
from pathlib import Path

import pytest

from service.config.cgroups import cpu_quota, memory_left, memory_limit
from tests.cases import check_each
from tests.service.config.cgroup_trees import UNLIMITED_V1, quota_v1, v1, v2, write_tree

MIB = 1 << 20


def found(root: Path) -> tuple[float | None, float | None]:
    quota, memory = cpu_quota(root), memory_limit(root)
    return None if quota is None else quota.value, None if memory is None else memory.value


def test_container_of_version_2_is_at_the_top_of_its_mount(tmp_path: Path) -> None:
    root = v2(
        tmp_path, {"cpu.max": "200000 100000\n", "memory.max": f"{512 * MIB}\n", "memory.high": "max\n"}
    )
    quota, memory = cpu_quota(root), memory_limit(root)
    assert quota is not None
    assert memory is not None
    assert (quota.value, str(quota.file)) == (2, "/sys/fs/cgroup/cpu.max")
    assert (memory.value, str(memory.file)) == (512 * MIB, "/sys/fs/cgroup/memory.max")


def test_unit_of_systemd_is_limited_by_every_slice_above(tmp_path: Path) -> None:
    files = {
        "a.slice/cpu.max": "150000 50000\n",
        "a.slice/memory.max": f"{256 * MIB}\n",
        "a.slice/b.service/cpu.max": "max 100000\n",
        "a.slice/b.service/memory.max": f"{300 * MIB}\n",
        "a.slice/b.service/memory.high": f"{400 * MIB}\n",
        "other.slice/cpu.max": "1000 100000\n",
    }
    root = v2(tmp_path, files, path="/a.slice/b.service")
    assert found(root) == (3, 256 * MIB)
    quota = cpu_quota(root)
    assert quota is not None
    assert str(quota.file) == "/sys/fs/cgroup/a.slice/cpu.max"


def test_limit_that_slows_down_counts_as_well(tmp_path: Path) -> None:
    root = v2(tmp_path, {"memory.max": f"{512 * MIB}\n", "memory.high": f"{400 * MIB}\n"})
    assert found(root) == (None, 400 * MIB)


@pytest.mark.parametrize("path", ["/docker/0a1b", "/"])
def test_container_of_version_1(tmp_path: Path, path: str) -> None:
    """The runtime mounts the container's own cgroup; `/proc/self/cgroup` has its path on the host, or its own view."""
    files = quota_v1("", "250000\n") | {"memory/memory.limit_in_bytes": f"{128 * MIB}\n"}
    assert found(v1(tmp_path, files, path=path, top=path)) == (2.5, 128 * MIB)


def test_process_of_version_1_below_the_top(tmp_path: Path) -> None:
    files = quota_v1("kubepods/pod1", "400000\n") | quota_v1("kubepods", "-1\n")
    files |= {
        "memory/kubepods/pod1/memory.limit_in_bytes": UNLIMITED_V1,
        "memory/kubepods/memory.limit_in_bytes": f"{64 * MIB}\n",
    }
    assert found(v1(tmp_path, files, path="/kubepods/pod1")) == (4, 64 * MIB)


def test_cgroup_that_is_not_mounted_falls_back_to_the_top(tmp_path: Path) -> None:
    for number, path in enumerate(["/../..", "/elsewhere/x", "/../sibling"]):
        root = v2(tmp_path / str(number), {"cpu.max": "100000 100000\n"}, path=path, top="/here")
        assert found(root) == (1, None)


def test_both_versions_at_once(tmp_path: Path) -> None:
    root = v1(tmp_path, quota_v1("", "300000\n") | {"unified/memory.max": f"{MIB}\n"})
    with (root / "proc/self/mountinfo").open("a") as mounts:
        mounts.write("41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
    assert found(root) == (3, MIB)


def test_no_limits(tmp_path: Path) -> None:
    assert found(tmp_path) == (None, None)
    assert found(v2(tmp_path / "v2", {"cpu.max": "max 100000\n", "memory.max": "max\n"})) == (None, None)
    files = quota_v1("", "-1\n") | {"memory/memory.limit_in_bytes": UNLIMITED_V1}
    assert found(v1(tmp_path / "v1", files)) == (None, None)


def test_what_makes_no_sense_is_no_limit(tmp_path: Path) -> None:
    def check(case: tuple[str, str]) -> None:
        quota, memory = case
        folder = tmp_path / str(next(numbers))
        assert found(v2(folder, {"cpu.max": quota, "memory.max": memory})) == (None, None)

    numbers = count()
    quotas = ["", "\n", "0 100000", "100000 0", "x 100000", "100000", "-5 100000", "1e5 1"]
    check_each(product(quotas, ["", "0", "-1", "y", "1e9"]), check)


def test_bytes_that_are_no_text_are_no_limit(tmp_path: Path) -> None:
    root = v2(tmp_path, {"cpu.max": ""})
    (root / "sys/fs/cgroup/cpu.max").write_bytes(b"\xff\xfe 1")
    assert found(root) == (None, None)


def test_broken_lists_of_cgroups_and_mounts_are_no_limit(tmp_path: Path) -> None:
    for number, (groups, mounts) in enumerate(
        [
            ("", ""),
            ("0", "-"),
            ("::", " - cgroup2"),
            ("0::/\n1:cpu", "a b c d - cgroup cgroup"),
            ("x:cpu:/", " - "),
        ]
    ):
        files = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts}
        assert found(write_tree(tmp_path / str(number), files)) == (None, None)


def test_mount_with_a_space_in_its_name(tmp_path: Path) -> None:
    files = {
        "/proc/self/cgroup": "0::/\n",
        "/proc/self/mountinfo": "29 23 0:26 / /mnt/my\\040cgroups rw - cgroup2 cgroup rw\n",
        "/mnt/my cgroups/cpu.max": "700000 100000\n",
    }
    assert found(write_tree(tmp_path, files)) == (7, None)


def test_what_is_left_is_the_limit_less_what_is_used_and_cannot_be_taken_back(tmp_path: Path) -> None:
    files = {
        "memory.max": "max\n",
        "unit/memory.max": "1000\n",
        "unit/memory.current": "700\n",
        "unit/memory.stat": "anon 500\ninactive_file 150\nactive_file 50\n",
        "memory.current": "5000\n",
    }
    assert memory_left(v2(tmp_path / "two", files, path="/unit")) == 450
    above = files | {"memory.max": "5010\n", "memory.stat": ""}
    assert memory_left(v2(tmp_path / "above", above, path="/unit")) == 10
    old = {
        "memory/memory.limit_in_bytes": "1000\n",
        "memory/memory.usage_in_bytes": "990\n",
        "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 20\n",
    }
    assert memory_left(v1(tmp_path / "one", old)) == 30


def test_without_a_limit_it_is_not_known_what_is_left(tmp_path: Path) -> None:
    assert memory_left(v2(tmp_path / "two", {"memory.max": "max\n", "memory.current": "5\n"})) is None
    assert memory_left(v2(tmp_path / "half", {"memory.max": "10\n"})) is None
    unlimited = {"memory/memory.limit_in_bytes": UNLIMITED_V1, "memory/memory.usage_in_bytes": "5\n"}
    assert memory_left(v1(tmp_path / "one", unlimited)) is None
