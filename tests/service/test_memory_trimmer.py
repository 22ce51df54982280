"""Memory that requests have freed goes back to the system."""

import gc
import subprocess
import sys
from pathlib import Path
from threading import Event
from weakref import ref

import pytest

from service import memory_trimmer
from service.memory_trimmer import SLACK_BYTES, MemoryTrimmer

MIB = 1 << 20


class Memory:
    """What is resident: memory in use, and memory that is free and kept."""

    def __init__(self) -> None:
        self.used, self.kept, self.trims = 200 * MIB, 0, 0

    def resident(self) -> int:
        return self.used + self.kept

    def trim(self) -> None:
        self.kept = 0
        self.trims += 1

    def trimmer(self) -> MemoryTrimmer:
        return MemoryTrimmer(self.resident, self.trim)


class Cycle:
    """Refers to itself."""

    def __init__(self) -> None:
        self.own = self


def test_cycles_of_objects_are_looked_for_where_something_was_dropped() -> None:
    trimmer = Memory().trimmer()
    gc.disable()  # as if the collector never came
    try:
        dropped = ref(Cycle())
        trimmer.look()
        assert dropped() is not None
        trimmer.collect()
        trimmer.look()
        assert dropped() is None
    finally:
        gc.enable()


def test_free_memory_is_given_back() -> None:
    memory = Memory()
    trimmer = memory.trimmer()
    trimmer.look()
    memory.kept = SLACK_BYTES
    trimmer.look()
    assert memory.trims == 0
    memory.kept += 1
    trimmer.look()
    assert (memory.trims, memory.kept) == (1, 0)


def test_attempts_become_rarer_while_they_are_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    # what earlier tests have run in this process is none of this test's memory
    monkeypatch.setattr(memory_trimmer, "release_idle_memory", lambda: 0)
    memory = Memory()
    trimmer = memory.trimmer()
    first = trimmer.look()
    memory.used += 100 * MIB
    waits = [trimmer.look() for _ in range(8)]
    assert first < waits[0] < waits[1]
    assert waits[-1] == waits[-2] <= 5
    memory.used, memory.kept = 200 * MIB, 100 * MIB
    assert trimmer.look() == first
    assert memory.kept == 0


def test_the_thread_looks_until_it_is_closed() -> None:
    memory, looked = Memory(), Event()

    def resident() -> int:
        looked.set()
        return memory.resident()

    trimmer = MemoryTrimmer(resident, memory.trim)
    trimmer.start()
    assert looked.wait(20)
    trimmer.close()
    assert not trimmer._thread.is_alive()
    MemoryTrimmer(memory.resident, memory.trim).close()


_MEASURE = """
import ctypes
from service import memory_trimmer
from service.memory_trimmer import MemoryTrimmer, _resident_bytes
trimmer = MemoryTrimmer()
trimmer.look()
least = _resident_bytes()
blocks = [bytes(100_000) + b"x" for _ in range(1000)]
keep = blocks[-1]
del blocks
before = _resident_bytes() - least
trimmer.look()
print(before, _resident_bytes() - least)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_allocator_gives_back_what_is_below_memory_in_use() -> None:
    command = [sys.executable, "-c", _MEASURE]
    root = Path(__file__).parents[2]
    printed = subprocess.run(command, capture_output=True, check=True, text=True, timeout=60, cwd=root).stdout
    before, after = map(int, printed.split())
    if before > SLACK_BYTES:  # glibc; other allocators give it back by themselves
        assert after < before // 2


_MEASURE_THREADS = """
import os
import threading
from service import memory_trimmer
from service.memory_trimmer import MemoryTrimmer, _resident_bytes, use_one_heap
os.environ.pop("MALLOC_ARENA_MAX", None)
use_one_heap()
trimmer = MemoryTrimmer()
trimmer.look()
least = _resident_bytes()
def work():
    del_large = bytearray(30 << 20)
    del del_large  # glibc keeps twice as much from now on
    blocks = [bytes(100_000) + b"x" for _ in range(500)]
    del blocks
for _ in range(3):
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
trimmer.look()
print(_resident_bytes() - least)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_threads_have_freed_is_given_back() -> None:
    command = [sys.executable, "-c", _MEASURE_THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert int(done.stdout) <= SLACK_BYTES  # with a heap for each thread it is six times as much
