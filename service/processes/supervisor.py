"""Starts the processes of a server, starts those anew that end, replaces them one by one, and ends them all.

uvicorn's own supervisor knows no readiness but that its port is open, which here is before models are loaded, and no
drain of a single process; see docs/decisions/0015-several-processes.md.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from service.processes.backoff import Backoff
from service.processes.child import Child, start_child
from service.processes.connection_shares import make_shares_memory, withdraw
from service.processes.counter_memory import make_counter_memory
from service.processes.router import Router
from service.processes.slot import START_FAILED, Slot

MOST_FAILED_STARTS = 5
"""Starts in a row that may fail while no process serves, before the server ends."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all processes share.

    Attributes:
        processes: how many there are.
        url: where they are reached.
        sockets: the listening sockets.
        grpc_sockets: those for gRPC.
    """

    processes: int
    url: str
    sockets: Sequence[socket.socket]
    grpc_sockets: Sequence[socket.socket] = ()


class Supervisor:
    """Keeps as many processes at work as the settings say.

    The first one starts alone, and compiles what the others then find on disk. Each has a slot, of which there is one
    more than processes, so that a process can be replaced by one that serves already.

    Args:
        shared: what all processes share.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._counters = tuple(make_counter_memory() for _ in range(shared.processes + 1))
        self._shares = make_shares_memory(len(self._counters))
        self._grpc_shares = make_shares_memory(len(self._counters))
        self._children: set[Child] = set()
        self._router = Router(lambda: self._children)
        self._signals: list[signal.Signals] = []
        self._stopping = asyncio.Event()
        self._rolling = asyncio.Event()
        self._is_rolling = False
        self._slots = asyncio.Condition()
        self._keepers: set[asyncio.Task[None]] = set()
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
        first = await self._start(is_first=True, is_told=True)
        if not await first.until_ready():
            return self._fail_start(first)
        others = [await self._start(is_first=False, is_told=False) for _ in range(self._shared.processes - 1)]
        for other in others:
            if not await other.until_ready() and not self._stopping.is_set():
                return self._fail_start(other)
        if self._stopping.is_set():
            return None
        url, count = self._shared.url, self._shared.processes
        _logger.info("ready: running on %s in %d processes (Ctrl-C stops them)", url, count)
        for child in (first, *others):
            self._start_task(self._keep(child))
        self._start_task(self._roll())
        await self._stopping.wait()
        for keeper in self._keepers:
            keeper.cancel()
        return None

    def _start_task(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._keepers.add(task)
        task.add_done_callback(self._keepers.discard)

    def _fail_start(self, child: Child) -> None:
        """Note the exit code of a process that did not come to serve."""
        if self._stopping.is_set():
            return
        code = child.process.returncode
        if code is not None and code > 0:  # it has said why
            self._exit_code = code
        else:
            self._exit_code = START_FAILED
            _logger.error("process %d ended at its start: %s", child.slot.number, _ending(child))

    async def _start(self, *, is_first: bool, is_told: bool) -> Child:
        """Start a process, in a slot that none is in."""
        async with self._slots:
            await self._slots.wait_for(lambda: self._free_slot() is not None)
            number = self._free_slot() or 0
            ours, theirs = socket.socketpair()
            sockets = tuple(opened.fileno() for opened in self._shared.sockets)
            shared = (self._shared.processes, self._shared.url, sockets, theirs.fileno())
            grpc = tuple(opened.fileno() for opened in self._shared.grpc_sockets), self._grpc_shares
            slot = Slot(number, *shared, self._counters, self._shares, is_first, is_told, *grpc)
            with theirs:
                child = await start_child(slot, ours, self._router.take)
            self._children.add(child)
            if self._stopping.is_set():
                child.signal(signal.SIGTERM)
            return child

    def _free_slot(self) -> int | None:
        taken = {child.slot.number for child in self._children}
        return next((number for number in range(self._shared.processes + 1) if number not in taken), None)

    async def _until_ended(self, child: Child) -> None:
        """Return once a process has ended and all that it said is read; its slot is free then."""
        await child.process.wait()
        if child not in self._children:  # another one may be in its slot by now
            return
        for shares in (self._shares, self._grpc_shares):
            withdraw(shares, child.slot.number)
        if child.listening is not None:
            await asyncio.wait([child.listening])  # several may wait for it, and one of them be cancelled
        self._children.discard(child)
        async with self._slots:
            self._slots.notify_all()

    async def _keep(self, child: Child) -> None:
        """Start a process anew each time that it ends, unless it was told to end."""
        backoff = Backoff()
        while True:
            await self._until_ended(child)
            if child.is_leaving or (child.replaced is not None and await child.replaced):
                return
            seconds = backoff.seconds()
            when = f"in {seconds:g} s" if seconds else "now"
            _logger.error(
                "process %d ended: %s; another one starts %s", child.slot.number, _ending(child), when
            )
            await asyncio.sleep(seconds)
            child = await self._start_again(backoff)
            if await child.until_ready():
                self._failed_starts = 0
                _logger.info("process %d serves", child.slot.number)
                self._start_task(self._see_that_all_serve_the_same(child))
            else:
                self._note_failed_start()

    async def _start_again(self, backoff: Backoff) -> Child:
        """Start a process, as soon as the system lets us."""
        while True:
            backoff.begin()
            try:
                return await self._start(is_first=False, is_told=False)
            except OSError as error:  # no memory is left, or there may be no more processes
                seconds = backoff.seconds()
                _logger.error("no process can be started: %s; once more in %g s", error, seconds)  # noqa: TRY400
            await asyncio.sleep(seconds)

    async def _see_that_all_serve_the_same(self, child: Child) -> None:
        """Replace all processes where one that was started anew has read other models than the others serve."""
        differ, lost = await self._router.differing(child)
        number = child.slot.number
        if lost:
            _logger.error("process %d cannot serve %s, as others do: files changed", number, ", ".join(lost))
        elif differ and not self._is_rolling:
            _logger.warning(
                "process %d serves other files of %s than the others: they changed", number, ", ".join(differ)
            )
            self._rolling.set()

    def _note_failed_start(self) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MOST_FAILED_STARTS and not any(one.is_ready for one in self._children):
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
        """Replace all processes by new ones, one after the other, each time that it is asked for."""
        while True:
            await self._rolling.wait()
            self._rolling.clear()
            self._is_rolling = True
            _logger.info("restarting: processes are replaced one by one")
            # those that start just now may have read what was there before: they are replaced as well, last of all
            old = sorted(self._children, key=lambda one: (not one.is_ready, one.slot.number))
            for place, child in enumerate(old):
                if not await self._replace(child, is_told=place == 0):
                    break
            else:
                _logger.info("restarted: %d processes were replaced", len(old))
            self._is_rolling = False

    async def _replace(self, old: Child, *, is_told: bool) -> bool:
        """Start a process in the place of another one, which then ends; returns whether the new one serves.

        The old one may end before: then its keeper waits for what becomes of the new one, and starts none beside it.
        """
        if not await old.until_ready():
            return True  # the process that is started next reads all anew
        old.replaced = asyncio.get_running_loop().create_future()
        serves = False
        try:
            serves = await self._start_in_place_of(old, is_told=is_told)
        finally:
            if not old.replaced.done():  # its keeper, when that is cancelled, cancels it as well
                old.replaced.set_result(serves)
        if serves:
            old.leave()
            await self._until_ended(old)
        return serves

    async def _start_in_place_of(self, old: Child, *, is_told: bool) -> bool:
        try:
            new = await self._start(is_first=False, is_told=is_told)
        except OSError as error:
            _logger.error("restart given up: no process can be started: %s", error)  # noqa: TRY400
            return False
        if await new.until_ready():
            self._start_task(self._keep(new))
            return True
        await self._until_ended(new)
        _logger.error(
            "restart given up: the new process ended: %s; process %d and those after it serve on",
            _ending(new),
            old.slot.number,
        )
        return False

    def _stop(self, number: signal.Signals) -> None:
        """Have all processes end; a second signal ends their drain."""
        is_first = not self._signals
        if is_first and not self._exit_code:
            _logger.info("stopping on %s: all processes end", number.name)
        self._signals.append(number)
        self._stopping.set()
        for child in self._children:
            if is_first:
                child.signal(signal.SIGTERM)
            else:
                child.hurry()

    async def _end_all(self) -> None:
        """End all processes that are left, and wait for them; the exit code is the highest of theirs."""
        if not self._signals:
            self._stop(signal.SIGTERM)
        children = list(self._children)
        for child in children:
            await self._until_ended(child)
        codes = {child.process.returncode or 0 for child in children} - {
            -signal.SIGTERM
        }  # before it heard signals
        if self._exit_code == 0:
            self._exit_code = max((code if code >= 0 else START_FAILED for code in codes), default=0)


def _ending(child: Child) -> str:
    """Return how a process ended, in words."""
    code = child.process.returncode
    if code is None:
        return "it runs"
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
