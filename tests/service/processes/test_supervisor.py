import asyncio
import logging
import os
import socket
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.processes import supervisor
from service.processes.slot import READY, START_FAILED, Slot, take_slot
from service.processes.supervisor import Supervisor, run_processes

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system"),
]


def slot_of(processes: int, listening: socket.socket, metrics: Path) -> Slot:
    return Slot(processes, [listening.fileno()], str(metrics), None)


async def test_server_ends_in_words_where_the_system_starts_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def refuse(*command: str, **options: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with socket.socket() as listening, caplog.at_level(logging.ERROR):
        assert await Supervisor(slot_of(2, listening, tmp_path), "").run() == START_FAILED
    assert [record.message for record in caplog.records] == [
        "no process can be started: Resource temporarily unavailable"
    ]


async def test_processes_that_start_together_have_slots_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    numbers = []

    async def start(*command: str, env: dict[str, str], **options: object) -> SimpleNamespace:
        await asyncio.sleep(0)
        slot = take_slot(env)
        assert slot is not None
        numbers.append(slot.number)
        os.write(slot.channel, READY)
        return SimpleNamespace(returncode=None, wait=partial(asyncio.sleep, 0, 0))

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    with socket.socket() as listening:
        supervisor = Supervisor(slot_of(3, listening, tmp_path), "")
        started = await asyncio.gather(*(supervisor._start() for _ in range(4)))
    assert sorted(numbers) == [0, 1, 2, 3]
    for process in started:
        await supervisor._until_ended(process)


@pytest.mark.parametrize("serves", [True, False])
async def test_restarts_wait_longer_until_a_process_has_lived_for_a_while(
    serves: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    waits: list[float] = []
    now, nothing = [0.0], partial(asyncio.sleep, 0)

    async def wait() -> int:
        now[0] += supervisor.SOUND_SECONDS if len(waits) == 8 else 0
        await nothing()
        return 1

    async def start(*command: str, env: dict[str, str], **options: object) -> SimpleNamespace:
        slot = take_slot(env)
        assert slot is not None
        if serves or not waits or len(waits) == 8:
            os.write(slot.channel, READY)
        return SimpleNamespace(returncode=None, wait=wait, terminate=lambda: None)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 10:
            raise asyncio.CancelledError
        await nothing()

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(supervisor, "monotonic", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    with socket.socket() as listening:
        made = Supervisor(slot_of(2, listening, tmp_path), "")
        made._serving = [await made._start()]
        with pytest.raises(asyncio.CancelledError):
            await made._keep(0)
    assert waits == [0, 0.5, 1, 2, 4, 8, 16, 30, 0, 0.5]


def test_server_ends_in_words_where_no_folder_can_be_made(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(**options: object) -> None:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(supervisor, "TemporaryDirectory", refuse)
    with caplog.at_level(logging.ERROR):
        assert run_processes(2, "", []) == START_FAILED
    assert [record.message for record in caplog.records] == [
        "several processes need a folder for their metrics (TMPDIR): No usable temporary directory found"
    ]
