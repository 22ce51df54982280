"""Runs several processes, from the first one on."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence

from service.processes.slot import START_FAILED
from service.processes.supervisor import Shared, Supervisor

_logger = logging.getLogger(__name__)


def run_processes(processes: int, url: str, sockets: Sequence[socket.socket]) -> int:
    """Serve with several processes until a signal comes; returns the exit code.

    Args:
        processes: how many there are.
        url: where they are reached.
        sockets: the listening sockets, which all of them share.
    """
    if os.name != "posix":
        _logger.error("processes: several need a POSIX system; with 1 the server runs here as well")
        return START_FAILED
    _logger.info("listening on %s, starting %d processes", url, processes)
    return asyncio.run(_run(Shared(processes, url, sockets)))


async def _run(shared: Shared) -> int:
    return await Supervisor(shared).run()
