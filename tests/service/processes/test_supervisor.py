import asyncio
import logging
import os
import socket
from pathlib import Path

import pytest

from service.processes import supervisor
from service.processes.slot import START_FAILED
from service.processes.supervisor import Supervisor, run_processes

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system"),
]


async def test_server_ends_in_words_where_the_system_starts_no_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    async def refuse(*command: str, **options: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
    with socket.socket() as listening, caplog.at_level(logging.ERROR):
        assert await Supervisor(2, "", [listening], str(tmp_path)).run() == START_FAILED
    assert [record.message for record in caplog.records] == [
        "no process can be started: Resource temporarily unavailable"
    ]


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
