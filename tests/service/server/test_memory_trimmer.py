"""Memory that large requests leave behind goes back to the system."""

import sys

import pytest

from service.server.memory_trimmer import MemoryTrimmer, memory_trimmer, resident_bytes

MB = 1 << 20


class Heap:
    """Memory of which a part is in use, and the rest can be given back."""

    def __init__(self) -> None:
        self.used, self.kept, self.trims = 100 * MB, 0, 0

    def resident(self) -> int:
        return self.used + self.kept

    def trim(self) -> None:
        self.kept = 0
        self.trims += 1


@pytest.fixture
def heap() -> Heap:
    return Heap()


@pytest.fixture
def trimmer(heap: Heap) -> MemoryTrimmer:
    made = MemoryTrimmer(heap.trim, heap.resident)
    made._least = made._last = heap.resident()
    return made


def test_nothing_is_done_while_memory_does_not_grow(heap: Heap, trimmer: MemoryTrimmer) -> None:
    heap.kept = 10 * MB
    assert not any(trimmer.look() for _ in range(100))


def test_what_a_large_request_left_is_given_back(heap: Heap, trimmer: MemoryTrimmer) -> None:
    for _ in range(3):
        heap.kept = 200 * MB
        assert trimmer.look()
        assert heap.resident() == 100 * MB
        assert not trimmer.look()


def test_what_is_in_use_is_tried_less_and_less_often(heap: Heap, trimmer: MemoryTrimmer) -> None:
    heap.used = 500 * MB
    tried = [trimmer.look() for _ in range(200)]
    assert tried[:8] == [True, False, True, False, False, False, True, False]
    assert 10 < sum(tried) < 20
    heap.used, heap.kept = 120 * MB, 300 * MB
    assert trimmer.look()
    assert heap.resident() == 120 * MB


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of a process so")
def test_the_trimmer_of_this_process_ends_when_it_is_told_to() -> None:
    assert resident_bytes() > MB
    trimmer = memory_trimmer()
    trimmer.start()
    trimmer.look()
    trimmer.close()
    assert not trimmer._thread.is_alive()
    MemoryTrimmer(None, resident_bytes).close()
