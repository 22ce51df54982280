"""Runs several processes, from the first one on."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Sequence

from service.processes.slot import START_FAILED
from service.processes.supervisor import Shared, Supervisor

_logger = logging.getLogger(__name__)


def run_processes(
    processes: int, url: str, sockets: Sequence[socket.socket], grpc_sockets: Sequence[socket.socket] = ()
) -> int:
    """Serve with several processes until a signal comes; returns the exit code.

    Args:
        processes: how many there are.
        url: where they are reached.
        sockets: the listening sockets, which all of them share.
        grpc_sockets: those for gRPC; none where it is not answered.
    """
    if os.name != "posix":
        _logger.error("processes: several need a POSIX system; with 1 the server runs here as well")
        return START_FAILED
    if grpc_sockets and sys.platform != "linux":
        _logger.error("grpc_port: with several processes it needs Linux; leave it out, or set processes to 1")
        return START_FAILED
    _logger.info("listening on %s, starting %d processes", url, processes)
    return asyncio.run(_run(Shared(processes, url, sockets, grpc_sockets)))


async def _run(shared: Shared) -> int:
    return await Supervisor(shared).run()
