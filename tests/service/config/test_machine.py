"""What a process may use: CPUs and memory, from file trees rather than from the machine that runs the tests."""

import os
from pathlib import Path

import pytest

from service.config import machine
from service.config.machine import Machine, read_machine
from tests.service.config.cgroup_trees import quota_v1, v1, v2

GIB = 1 << 30


@pytest.fixture(autouse=True)
def no_address_space_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_address_space", lambda: None)


@pytest.mark.parametrize("version", [1, 2])
def test_quota_of_2_cpus_on_64_cores(tmp_path: Path, version: int) -> None:
    tree = (
        v2(tmp_path, {"cpu.max": "200000 100000\n"})
        if version == 2
        else v1(tmp_path, quota_v1("", "200000\n"))
    )
    found = read_machine(tree, cores=64, ram=256 * GIB)
    assert found.cpus == 2
    assert "a quota of 2 CPUs in /sys/fs/cgroup/cpu" in found.cpus_from
    assert (found.memory, found.memory_from) == (256 * GIB, "the memory of the machine")


@pytest.mark.parametrize(
    ("quota", "cores", "cpus"),
    [("50000", 8, 1), ("150000", 8, 1), ("390000", 8, 3), ("800000", 8, 8), ("900000", 8, 8), ("100", 1, 1)],
)
def test_quota_is_rounded_down_to_whole_threads(tmp_path: Path, quota: str, cores: int, cpus: int) -> None:
    found = read_machine(v2(tmp_path, {"cpu.max": f"{quota} 100000"}), cores=cores, ram=GIB)
    assert found.cpus == cpus
    assert ("quota" in found.cpus_from) == (int(quota) < cores * 100_000)


def test_least_limit_of_memory_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = v2(tmp_path, {"memory.max": str(2 * GIB)})
    assert read_machine(tree, 1, ram=8 * GIB).memory == 2 * GIB
    assert read_machine(tree, 1, ram=8 * GIB).memory_from == "the limit in /sys/fs/cgroup/memory.max"
    assert read_machine(tree, 1, ram=GIB).memory_from == "the memory of the machine"
    monkeypatch.setattr(machine, "_address_space", lambda: GIB // 2)
    assert read_machine(tree, 1, ram=8 * GIB).memory == GIB // 2
    assert "ulimit -v" in read_machine(tree, 1, ram=8 * GIB).memory_from


def test_platform_that_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sysconf", raising=False)
    found = read_machine(tmp_path)
    assert found.cpus == (os.cpu_count() or 1)
    assert (found.memory, found.memory_from) == (None, "a platform that does not report it")


def test_this_machine_has_cpus_and_memory() -> None:
    found = read_machine()
    assert found.cpus >= 1
    assert found.memory is None or found.memory > 0


def test_processes_share_a_machine_equally() -> None:
    machine = Machine(5, "the cores", 1000, "the memory")
    assert machine.part(2) == Machine(
        2, "one of 2 equal parts of the cores", 500, "one of 2 equal parts of the memory"
    )
    assert machine.part(9).cpus == 1
    assert Machine(4, "", None, "").part(2).memory is None
    assert machine.part(1) is machine
