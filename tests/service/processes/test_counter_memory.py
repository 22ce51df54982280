import json
import logging
import os
import threading
from collections.abc import Iterator

import pytest

from service.processes import counter_memory as module
from service.processes.counter_memory import CounterMemory, make_counter_memory

NAME = (("model", "digits", "1"), "")


@pytest.fixture
def descriptor() -> Iterator[int]:
    made = make_counter_memory()
    yield made
    os.close(made)


def test_what_one_process_writes_another_reads_and_a_third_goes_on_with(descriptor: int) -> None:
    first, second = CounterMemory(descriptor), CounterMemory(descriptor)
    assert second.row(NAME, 2) is None
    first.write(NAME, [1, 2.5])
    assert second.row(NAME, 2) == [1, 2.5]
    first.write(NAME, [3, 2**53])
    first.write((("http",), "é"), [7])
    assert (second.row(NAME, 2), second.row((("http",), "é"), 1)) == ([3, 2**53], [7])
    third = CounterMemory(descriptor)
    third.write(NAME, [4, 0])
    third.write((("http",), "more"), [8])
    assert second.row(NAME, 2) == [4, 0]
    assert second.members(("http",)) == ["é", "more"]
    assert list(second.groups("model")) == [("model", "digits", "1")]


def test_row_of_another_size_is_neither_read_nor_written_over(descriptor: int) -> None:
    memory = CounterMemory(descriptor)
    memory.write(NAME, [1, 2])
    memory.write(NAME, [3, 4, 5])
    assert memory.row(NAME, 3) is None
    assert memory.row(NAME, 2) == [1, 2]


def test_memory_that_is_full_is_told_once(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_DOCUMENT", 200)
    memory = CounterMemory(descriptor)
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            memory.write((("http",), str(number)), [number] * 5)
    kept = memory.members(("http",))
    assert 0 < len(kept) < 5
    assert [memory.row((("http",), member), 5) for member in kept] == [[int(member)] * 5 for member in kept]
    assert len(caplog.records) == 1


def test_last_document_is_read_whole(descriptor: int) -> None:
    writer, reader = CounterMemory(descriptor), CounterMemory(descriptor)
    assert reader.published() is None
    writer.publish(json.dumps([1, 2, 3]).encode())
    assert reader.published() == b"[1, 2, 3]"
    writer.publish(b"[]")
    assert reader.published() == b"[]"
    os.pwrite(descriptor, b"{", module._DOCUMENTS[0] + module._SEAL.size)
    assert reader.published() == b"[1, 2, 3]", (
        "a process that was ended while it wrote has left the one before"
    )
    third = CounterMemory(descriptor)
    third.publish(b"third")
    assert reader.published() == b"third"
    writer.publish(bytes(module.BYTES // 4))
    assert reader.published() == b"third", "one that is too large is left out"


def test_document_is_read_while_it_is_replaced(descriptor: int) -> None:
    writer, reader = CounterMemory(descriptor), CounterMemory(descriptor)
    documents = [bytes([number]) * (200_000 + number) for number in range(2)]
    writer.publish(documents[0])
    is_over = threading.Event()

    def publish() -> None:
        while not is_over.is_set():
            for document in documents:
                writer.publish(document)

    threads = [threading.Thread(target=publish) for _ in range(2)]  # as when two clients ask
    for thread in threads:
        thread.start()
    try:
        assert all(reader.published() in documents for _ in range(200))
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
