"""A thousand clients at once: what is too much is refused, and memory stays bounded."""

import asyncio
import contextlib
import re
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.service.codec.payloads import npy
from tests.service.models import add_model
from tests.service.server.blocking import BLOCKING
from tests.service.server.process import ServerProcess

if sys.platform != "linux":
    pytest.skip("memory of another process is read from /proc", allow_module_level=True)
import resource

CLIENTS = 1000
QUEUE = 64
MAX_GROWTH = 300 << 20
"""Bytes that the server may grow by."""
PERIOD = 600.0
"""Seconds for all clients, which send a gigabyte in total."""
BODY = npy(np.full(1 << 18, 1, np.float32))
"""A tensor of a megabyte."""


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Let this process and the server have a socket for each client."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CLIENTS + 500
    if hard not in (resource.RLIM_INFINITY,) and hard < wanted:
        pytest.skip(f"no more than {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def memory(server: ServerProcess, kind: str) -> int:
    """Return bytes of resident memory: `VmRSS` now, `VmHWM` at the peak so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(rf"{kind}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) << 10


async def ask(server: ServerProcess, statuses: "asyncio.Queue[int]") -> None:
    """Send a request to the end, whatever the server says meanwhile; put the status of its response."""
    loop, address = asyncio.get_running_loop(), urlsplit(server.url)
    head = f"POST /infer?trace=off HTTP/1.1\r\nHost: t\r\nContent-Length: {len(BODY)}\r\n\r\n"
    line = b""
    # streams of asyncio drop the response that has arrived when sending fails
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, (address.hostname, address.port))
        with contextlib.suppress(ConnectionError):  # refused, and the server reads on for some seconds only
            await loop.sock_sendall(connection, head.encode())
            await loop.sock_sendall(connection, BODY)
        while b"\n" not in line:
            received = await loop.sock_recv(connection, 100)
            assert received, line
            line += received
    statuses.put_nowait(int(line.split()[1]))


async def overload(server: ServerProcess) -> Counter[int]:
    """Ask all at once; let runs go on when all that are refused have been reported so."""
    statuses: asyncio.Queue[int] = asyncio.Queue()
    counts: Counter[int] = Counter()
    async with asyncio.timeout(PERIOD), asyncio.TaskGroup() as clients:
        for _ in range(CLIENTS):
            clients.create_task(ask(server, statuses))
        while counts.total() < CLIENTS - QUEUE - 1:
            counts[await statuses.get()] += 1
        server.gate.give(CLIENTS)
        while counts.total() < CLIENTS:
            counts[await statuses.get()] += 1
    return counts


def test_memory_is_bounded_however_many_ask(tmp_path: Path) -> None:
    models = add_model(tmp_path, "blocking", BLOCKING)
    patient = ("--timeout", str(PERIOD), "--no-warm-up")
    flags = ("--workers", "1", "--queue-size", str(QUEUE), *patient)
    with ServerProcess("--models", str(models), *flags) as server:
        idle = memory(server, "VmRSS")
        counts = asyncio.run(overload(server))
        growth = memory(server, "VmHWM") - idle
    assert set(counts) == {200, 503}
    assert counts[200] == QUEUE + 1
    assert growth < MAX_GROWTH
