"""Starts worker processes, restarts those that end, replaces them one by one, and ends them all.

uvicorn's supervisor knows neither readiness after loading nor the drain of a single process; see
docs/decisions/0015-several-processes.md.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from time import monotonic

from prometheus_client.multiprocess import mark_process_dead

from service.processes.slot import ABORT, READY, RETIRE, START_FAILED, Slot

FIRST_SECONDS, MAX_SECONDS = 0.5, 30.0
"""The wait before the second restart in a row, which doubles with each further one, and the longest."""
SOUND_SECONDS = 60.0
"""A process that has lived so long did not end because of its start: the next one starts at once."""

_logger = logging.getLogger(__name__)


class _StartError(Exception):
    """A process does not come to serve; the message says why."""


@dataclass(eq=False)
class _Process:
    """A worker process in a slot, and the supervisor's end of the socket pair."""

    number: int
    process: asyncio.subprocess.Process
    writer: asyncio.StreamWriter

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            self.process.terminate()


class Supervisor:
    """Keeps as many processes serving as the settings say.

    The first one starts alone, and compiles what the others then find on disk. Each has a slot, of which there is one
    more than processes, so that a process can be replaced by one that serves already.

    Args:
        slot: what all slots have in common.
        url: where they are reached, for the log.
    """

    def __init__(self, slot: Slot, url: str) -> None:
        self._slot = slot
        self._url = url
        self._free = set(range(slot.processes + 1))
        self._alive: set[_Process] = set()
        self._serving: list[_Process] = []
        # held while a process is restarted or replaced
        self._replacing = [asyncio.Lock() for _ in range(slot.processes)]
        self._stopping = asyncio.Event()
        self._rolling = asyncio.Event()
        self._has_terminal = sys.stderr.isatty()

    async def run(self) -> int:
        """Serve until a signal comes; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        tasks: list[asyncio.Task[None]] = []
        try:
            self._serving = [await self._start(is_first=True, is_shown=True)]
            self._serving += await asyncio.gather(*(self._start() for _ in range(1, self._slot.processes)))
            if not self._stopping.is_set():
                message = "ready: running on %s in %d processes (Ctrl-C stops them)"
                _logger.info(message, self._url, self._slot.processes)
            duties = self._roll(), *map(self._keep, range(self._slot.processes))
            tasks = [asyncio.create_task(duty) for duty in duties]
            await self._stopping.wait()
        except _StartError as error:
            if not self._stopping.is_set():
                _logger.error(str(error))  # noqa: TRY400  # it says all there is to say
        for task in tasks:
            task.cancel()
        code = 0 if self._stopping.is_set() else START_FAILED
        self._stopping.set()
        for process in list(self._alive):
            if code:
                process.terminate()
            await self._until_ended(process)
        return code

    async def _start(self, *, is_first: bool = False, is_shown: bool = False) -> _Process:
        """Start the command of this process again, which reads its settings again, in a free slot, until it serves.

        It is of a process group of its own, so that Ctrl-C reaches only the supervisor, and ignores SIGHUP.

        Raises:
            _StartError: the system starts no process, or it has ended.
        """
        ours, theirs = socket.socketpair()
        number = min(self._free)
        self._free.remove(number)  # before another start can look
        slot = replace(
            self._slot, number=number, channel=theirs.fileno(), is_first=is_first, is_shown=is_shown
        )
        reader, writer = await asyncio.open_connection(sock=ours)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # inherited from its first moment on
        try:
            with theirs:
                started = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *sys.orig_argv[1:],
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(*slot.sockets, slot.channel),
                    env=os.environ | slot.variables(),
                    process_group=0,
                )
        except OSError as error:  # no memory or no process is left
            writer.close()
            self._free.add(number)
            raise _StartError(f"no process can be started: {error}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        process = _Process(number, started, writer)
        self._alive.add(process)
        if self._stopping.is_set():
            process.terminate()
        with suppress(ConnectionError):
            if await reader.read(1) == READY and started.returncode is None:
                return process
        raise _StartError(f"process {number} ended at its start: {await self._until_ended(process)}")

    async def _until_ended(self, process: _Process) -> str:
        """Return how a process ended, for the log, once it has; its slot is free then."""
        code = await process.process.wait()
        if process in self._alive:  # else its slot may be taken again
            process.writer.close()
            self._alive.remove(process)
            self._free.add(process.number)
            mark_process_dead(process.number, self._slot.metrics)  # type: ignore[no-untyped-call]  # its counters stay
        if -code in set(signal.Signals):
            return signal.Signals(-code).name
        return f"exit code {code}" if code >= 0 else f"signal {-code}"

    async def _keep(self, place: int) -> None:
        """Restart the process of a place whenever it ends."""
        seconds = 0.0
        while True:
            process, began = self._serving[place], monotonic()
            reason = f"process {process.number} ended: {await self._until_ended(process)}"
            async with self._replacing[place]:
                if monotonic() - began >= SOUND_SECONDS or self._serving[place] is not process:
                    seconds = 0.0
                while self._serving[place] is process:
                    when = f"in {seconds:g} s" if seconds else "now"
                    _logger.error("%s; another one starts %s", reason, when)
                    await asyncio.sleep(seconds)
                    seconds = min(max(2 * seconds, FIRST_SECONDS), MAX_SECONDS)
                    try:
                        self._serving[place] = await self._start()
                        _logger.info("process %d serves", self._serving[place].number)
                    except _StartError as error:
                        reason = str(error)

    def _hang_up(self) -> None:
        """Replace the processes; or stop, where the signal came because the terminal was closed."""
        if self._has_terminal and not os.isatty(sys.stderr.fileno()):
            self._stop(signal.SIGHUP)
        else:
            _logger.info("SIGHUP: processes are to be replaced")
            self._rolling.set()

    async def _roll(self) -> None:
        """Replace all processes, one after the other, at each SIGHUP."""
        while True:
            await self._rolling.wait()
            self._rolling.clear()
            _logger.info("restarting: processes are replaced one by one")
            try:
                for place, lock in enumerate(self._replacing):
                    async with lock:
                        old = self._serving[place]
                        self._serving[place] = await self._start(is_shown=place == 0)
                    old.writer.write(RETIRE)
                    await self._until_ended(old)
            except _StartError as error:
                message = "restart aborted: %s; process %d and later ones keep serving"
                _logger.error(message, error, self._serving[place].number)  # noqa: TRY400
            else:
                _logger.info("restarted: %d processes were replaced", self._slot.processes)

    def _stop(self, number: signal.Signals) -> None:
        """Have all processes drain; a second signal aborts the drain."""
        if self._stopping.is_set():
            for process in self._alive:
                process.writer.write(ABORT)
            return
        self._stopping.set()
        _logger.info("stopping on %s: all processes end", number.name)
        for process in self._alive:
            process.terminate()


def run_processes(
    count: int, url: str, sockets: Sequence[socket.socket], grpc_sockets: Sequence[socket.socket] = ()
) -> int:
    """Serve with several processes until a signal comes; returns the exit code.

    Args:
        count: number of processes.
        url: where they are reached.
        sockets: the listening sockets, which all of them share.
        grpc_sockets: sockets that reserve the port for gRPC; none without.
    """
    if os.name != "posix":
        _logger.error("processes: several need a POSIX system; with 1 the server runs here as well")
        return START_FAILED
    if grpc_sockets and sys.platform != "linux":
        _logger.error("grpc_port: with several processes it needs Linux; leave it out, or set processes to 1")
        return START_FAILED
    _logger.info("listening on %s, starting %d processes", url, count)
    grpc_port = grpc_sockets[0].getsockname()[1] if grpc_sockets else None
    descriptors = [opened.fileno() for opened in sockets]
    try:
        folder = TemporaryDirectory(prefix="kuiper-metrics-", ignore_cleanup_errors=True)
    except OSError as error:
        _logger.error("several processes need a folder for their metrics (TMPDIR): %s", error)  # noqa: TRY400
        return START_FAILED
    with folder:
        return asyncio.run(Supervisor(Slot(count, descriptors, folder.name, grpc_port), url).run())
