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
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from time import monotonic

from prometheus_client.multiprocess import mark_process_dead

from service.processes.connection_shares import make_shares_memory, withdraw
from service.processes.control import ABORT, READY, RETIRE
from service.processes.slot import START_FAILED, Slot

MAX_FAILED_STARTS = 5
"""Consecutive failed starts while no process serves, before the server ends."""
FIRST_SECONDS, MAX_SECONDS = 0.5, 30.0
"""The wait before the second restart in a row, which doubles with each further one, and the longest."""
SOUND_SECONDS = 60.0
"""A process that has lived so long did not end because of its start: the next one starts at once."""

_logger = logging.getLogger(__name__)


class _Process:
    """A worker process.

    Args:
        number: its slot.
        process: the process.
        channel: the supervisor's end of its control channel.
    """

    def __init__(
        self,
        number: int,
        process: asyncio.subprocess.Process,
        channel: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.number = number
        self.process = process
        self._receiving, self._sending = channel
        self._is_ready = False
        self._start = asyncio.create_task(self._until_started())

    async def _until_started(self) -> None:
        """Return once it serves or has ended."""
        with suppress(ConnectionError):
            self._is_ready = await self._receiving.read(1) == READY
        if not self._is_ready:
            await self.process.wait()

    async def until_ready(self) -> bool:
        """Return whether it serves, once it does or has ended."""
        await asyncio.shield(self._start)
        return self.serves

    async def until_ended(self) -> None:
        """Return once it has ended, and close its channel."""
        await self.process.wait()
        self._sending.close()

    @property
    def serves(self) -> bool:
        """Whether it is ready and has not ended."""
        return self._is_ready and self.process.returncode is None

    @property
    def ending(self) -> str:
        """How it ended, for the log."""
        code = self.process.returncode
        if code is None or code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def send(self, message: bytes) -> None:
        """Send a message; a process that has ended gets none."""
        if self.process.returncode is None:
            self._sending.write(message)

    def terminate(self) -> None:
        with suppress(ProcessLookupError):
            self.process.terminate()


@dataclass(eq=False, slots=True)
class _Worker:
    """One of the processes that are to serve, whichever process that is at the moment.

    Attributes:
        process: its process.
        replacing: held while its process is started again or replaced.
    """

    process: _Process
    replacing: asyncio.Lock = field(default_factory=asyncio.Lock)


class Supervisor:
    """Keeps as many processes serving as the settings say.

    The first one starts alone, and compiles what the others then find on disk. Each has a slot, of which there is one
    more than processes, so that a process can be replaced by one that serves already.

    Args:
        count: number of processes.
        url: where they are reached, for the log.
        sockets: the listening sockets.
        metrics: folder for the counters of all processes.
        grpc_port: the port for gRPC; None without.
    """

    def __init__(
        self,
        count: int,
        url: str,
        sockets: Sequence[socket.socket],
        metrics: str,
        grpc_port: int | None = None,
    ) -> None:
        self._count = count
        self._url = url
        self._sockets = sockets
        self._grpc_port = grpc_port
        self._metrics = metrics
        self._free = set(range(count + 1))
        self._shares = make_shares_memory(len(self._free))
        self._processes: set[_Process] = set()
        self._workers: list[_Worker] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._signals: list[signal.Signals] = []
        self._stopping = asyncio.Event()
        self._rolling = asyncio.Event()
        self._failed_starts = 0
        self._exit_code = 0
        self._has_terminal = sys.stderr.isatty()

    async def run(self) -> int:
        """Serve until a signal comes; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            await self._serve()
        except OSError as error:
            _logger.error("no process can be started: %s", error)  # noqa: TRY400  # it says all there is to say
            self._exit_code = START_FAILED
        finally:
            await self._end_all()
        return self._exit_code

    async def _serve(self) -> None:
        first = await self._start(is_first=True, is_shown=True)
        if not await first.until_ready():
            return self._fail_start(first)
        others = [await self._start() for _ in range(self._count - 1)]
        for other in others:
            if not await other.until_ready():
                return self._fail_start(other)
        if self._stopping.is_set():
            return None
        _logger.info("ready: running on %s in %d processes (Ctrl-C stops them)", self._url, self._count)
        self._workers = [_Worker(process) for process in (first, *others)]
        self._tasks = [asyncio.create_task(self._keep(worker)) for worker in self._workers]
        self._tasks.append(asyncio.create_task(self._roll()))
        await self._stopping.wait()
        for task in self._tasks:
            task.cancel()
        return None

    def _fail_start(self, process: _Process) -> None:
        """Set the exit code after a failed first start."""
        if self._stopping.is_set():
            return
        code = process.process.returncode
        if code is not None and code > 0:  # it has said why
            self._exit_code = code
        else:
            self._exit_code = START_FAILED
            _logger.error("process %d ended at its start: %s", process.number, process.ending)

    async def _start(self, *, is_first: bool = False, is_shown: bool = False) -> _Process:
        """Start the command of this process again, which reads its settings again, in a free slot.

        It is of a process group of its own, so that Ctrl-C reaches only the supervisor, and ignores SIGHUP.

        Raises:
            OSError: the system starts no process.
        """
        ours, theirs = socket.socketpair()
        number = min(self._free)
        slot = Slot(
            number=number,
            processes=self._count,
            sockets=tuple(opened.fileno() for opened in self._sockets),
            channel=theirs.fileno(),
            metrics=self._metrics,
            shares=self._shares,
            is_first=is_first,
            is_shown=is_shown,
            grpc_port=self._grpc_port,
        )
        self._free.remove(number)  # before another start can look
        channel = await asyncio.open_connection(sock=ours)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # inherited from its first moment on
        try:
            with theirs:
                started = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *sys.orig_argv[1:],
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=slot.descriptors,
                    env=os.environ | slot.variables(),
                    process_group=0,
                )
        except OSError:
            channel[1].close()
            self._free.add(number)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        process = _Process(number, started, channel)
        self._processes.add(process)
        if self._stopping.is_set():
            process.terminate()
        return process

    async def _until_ended(self, process: _Process) -> None:
        """Return once a process has ended; its slot is free then."""
        await process.until_ended()
        if process not in self._processes:  # its slot may be taken again
            return
        self._processes.remove(process)
        self._free.add(process.number)
        withdraw(self._shares, process.number)
        mark_process_dead(process.number, self._metrics)  # type: ignore[no-untyped-call]  # its counters stay

    async def _keep(self, worker: _Worker) -> None:
        """Restart the process of a worker whenever it ends."""
        seconds, began = 0.0, monotonic()
        while True:
            process = worker.process
            await self._until_ended(process)
            async with worker.replacing:
                if worker.process is not process:
                    seconds, began = 0.0, monotonic()
                    continue
                seconds = 0.0 if monotonic() - began >= SOUND_SECONDS else seconds
                when = f"in {seconds:g} s" if seconds else "now"
                _logger.error(
                    "process %d ended: %s; another one starts %s", process.number, process.ending, when
                )
                await asyncio.sleep(seconds)
                seconds, began = min(max(2 * seconds, FIRST_SECONDS), MAX_SECONDS), monotonic()
                try:
                    worker.process = await self._start()
                except OSError as error:  # no memory or no process is left
                    _logger.error("no process can be started: %s", error)  # noqa: TRY400
                    continue
            if await worker.process.until_ready():
                self._failed_starts = 0
                _logger.info("process %d serves", worker.process.number)
            else:
                self._note_failed_start()

    def _note_failed_start(self) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS and not any(one.serves for one in self._processes):
            _logger.error("no process serves, and none can be started: the server ends")
            self._exit_code = START_FAILED
            self._stopping.set()

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
            for place, worker in enumerate(self._workers):
                if not await self._replace(worker, is_shown=place == 0):
                    break
            else:
                _logger.info("restarted: %d processes were replaced", len(self._workers))

    async def _replace(self, worker: _Worker, *, is_shown: bool) -> bool:
        """Start a new process and retire the old one; returns whether the new one serves."""
        await worker.process.until_ready()
        async with worker.replacing:
            try:
                new = await self._start(is_shown=is_shown)
            except OSError as error:
                _logger.error("restart aborted: no process can be started: %s", error)  # noqa: TRY400
                return False
            old = worker.process
            if not await new.until_ready():
                await self._until_ended(new)
                message = "restart aborted: the new process ended: %s; process %d and later ones keep serving"
                _logger.error(message, new.ending, old.number)
                return False
            worker.process = new
        old.send(RETIRE)
        await self._until_ended(old)
        return True

    def _stop(self, number: signal.Signals) -> None:
        """Have all processes drain; a second signal aborts the drain."""
        is_first = not self._signals
        if is_first and not self._exit_code:
            _logger.info("stopping on %s: all processes end", number.name)
        self._signals.append(number)
        self._stopping.set()
        for process in self._processes:
            if is_first:
                process.terminate()
            else:
                process.send(ABORT)

    async def _end_all(self) -> None:
        """End all processes that are left, and wait for them; the exit code is the highest of theirs."""
        if not self._signals:
            self._stop(signal.SIGTERM)
        processes = list(self._processes)
        for process in processes:
            await self._until_ended(process)
        codes = {process.process.returncode or 0 for process in processes}
        codes.discard(-signal.SIGTERM)  # before it handled signals
        if self._exit_code == 0:
            self._exit_code = max((code if code >= 0 else START_FAILED for code in codes), default=0)


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

    try:
        folder = TemporaryDirectory(prefix="kuiper-metrics-", ignore_cleanup_errors=True)
        supervisor = Supervisor(count, url, sockets, folder.name, grpc_port)
    except OSError as error:
        message = "several processes need a folder for their metrics (TMPDIR): %s"
        _logger.error(message, error)  # noqa: TRY400  # it says all there is to say
        return START_FAILED
    with folder:
        return asyncio.run(supervisor.run())
