"""A thousand clients at once: what is too much is refused, and memory stays bounded."""

import asyncio
import contextlib
import re
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
from tests.service.server.process import SOON, ServerProcess

if sys.platform != "linux":
    pytest.skip("memory of another process is read from /proc", allow_module_level=True)
import resource

CLIENTS = 1000
QUEUE = 64
MOST_GROWTH = 300 << 20
"""Bytes that the server may grow by."""
CHUNK = 64 << 10
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
    """Send a request to the end, whatever the server says meanwhile; put the status of its answer."""
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"POST /infer?trace=off HTTP/1.1\r\nHost: t\r\nContent-Length: {len(BODY)}\r\n\r\n"
    try:
        writer.write(head.encode())
        for start in range(0, len(BODY), CHUNK):
            writer.write(BODY[start : start + CHUNK])
            await writer.drain()
    except ConnectionError:
        pass  # it is refused, and nobody listens any more: the answer is there
    line = await reader.readline()
    statuses.put_nowait(int(line.split()[1]))
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def overload(server: ServerProcess) -> Counter[int]:
    """Ask all at once; let runs go on when all that are refused have been told so."""
    statuses: asyncio.Queue[int] = asyncio.Queue()
    tasks = [asyncio.create_task(ask(server, statuses)) for _ in range(CLIENTS)]
    counts: Counter[int] = Counter()
    async with asyncio.timeout(SOON):
        while counts.total() < CLIENTS - QUEUE - 1:
            counts[await statuses.get()] += 1
        server.gate.give(CLIENTS)
        while counts.total() < CLIENTS:
            counts[await statuses.get()] += 1
        await asyncio.gather(*tasks)
    return counts


def test_memory_is_bounded_however_many_ask(tmp_path: Path) -> None:
    models = add_model(tmp_path, "blocking", BLOCKING)
    flags = ("--workers", "1", "--queue-size", str(QUEUE), "--no-warm-up", "--no-access-log")
    with ServerProcess("--models", str(models), *flags) as server:
        idle = memory(server, "VmRSS")
        counts = asyncio.run(overload(server))
        growth = memory(server, "VmHWM") - idle
    assert set(counts) == {200, 503}
    assert counts[200] == QUEUE + 1
    assert growth < MOST_GROWTH
