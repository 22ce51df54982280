"""A team of threads that run segments together."""

import os
import signal
import weakref
from collections.abc import Sequence

import numpy as np

from engine.compiler.memory.alignment import ALIGNMENT
from engine.compiler.threads import libc
from engine.compiler.threads.runner import (
    CONDITION,
    ENDED,
    INDEX,
    MEMBERS,
    MUTEX,
    RANGE_WORDS,
    RANGES,
    STATE,
    Runner,
    runner,
)
from engine.compiler.threads.segment import Segment
from engine.dtypes import Array
from engine.run.stop import StopSignal

_OWN_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP")


class ThreadTeam:
    """The calling thread and the helpers that work with it, asleep between runs.

    Helpers are native threads that never run Python. They belong to the process that made them: in
    a forked child the caller does all the work. A team does one run at a time.

    Args:
        threads: how many work together, the caller among them. It makes do with fewer where the system does not give
            as many; results are the same.
    """

    def __init__(self, threads: int) -> None:
        native = runner()
        self._native = native  # the functions are called as long as the team lives, even once it is closed
        self._together = native.together
        memory, self._address = _team_memory(threads)
        self._pid = os.getpid()
        helpers = _start_helpers(threads - 1, self._address, native) if libc.has_threads() else []
        self._helpers = len(helpers)
        memory[MEMBERS] = 1 + len(helpers)
        self._end = weakref.finalize(self, _end_helpers, helpers, self._address, memory, native, self._pid)
        self._end.atexit = False  # a run may be going on at exit; helpers end with the process

    @property
    def threads(self) -> int:
        """How many threads work together, the caller among them."""
        return 1 + (self._helpers if self.is_ours else 0)

    @property
    def is_ours(self) -> bool:
        """Whether this process made the team, rather than the one that it was forked from."""
        return self._pid == os.getpid()

    def run(
        self,
        segment: Segment,
        table_address: int,
        timestamps: Array | None = None,
        stop: StopSignal | None = None,
    ) -> int:
        """Run a segment; returns how many steps were done, fewer than it has if the signal stopped the run.

        Args:
            segment: what to run.
            table_address: of the table of addresses that the steps find their arguments in.
            timestamps: int64, one more than steps: gets the time of the start and of each step's end, in nanoseconds of
                time.perf_counter_ns.
            stop: checked before each step.

        Raises:
            ValueError: the timestamps do not fit the segment.
        """
        if not (self._helpers and segment.is_wide and self._pid == os.getpid()):
            return run_alone(segment, table_address, timestamps, stop)
        return self._together(*_arguments(segment, table_address, timestamps, stop), self._address)

    def close(self) -> None:
        """End the helpers; the caller works alone from here on. To be called between runs."""
        self._helpers = 0
        # not by calling it: at exit that does nothing, while helpers look at the team's memory as long as they live
        end = self._end.detach()
        if end is not None:
            _, function, arguments, _ = end
            function(*arguments)


def run_alone(
    segment: Segment, table_address: int, timestamps: Array | None = None, stop: StopSignal | None = None
) -> int:
    """Run a segment on the calling thread; all else as `ThreadTeam.run`."""
    return runner().alone(*_arguments(segment, table_address, timestamps, stop))


def _arguments(
    segment: Segment, table_address: int, timestamps: Array | None, stop: StopSignal | None
) -> tuple[int, int, int, int, int]:
    stamps_address = 0 if timestamps is None else _timestamps_address(timestamps, len(segment))
    return segment.address, len(segment), table_address, stamps_address, 0 if stop is None else stop.address


def _team_memory(threads: int) -> tuple[Array, int]:
    """Return a team's words, as they are before its first run, and their address."""
    size = RANGES + RANGE_WORDS * threads
    memory = np.zeros(size + ALIGNMENT // 8, np.int64)
    start = -memory.ctypes.data % ALIGNMENT // 8
    words = memory[start : start + size]
    words[STATE], words[INDEX] = ENDED, 1
    return words, words.ctypes.data


def _start_helpers(count: int, team: int, native: Runner) -> list[int]:
    """Start helpers, as many as the system gives."""
    libc.initialize_lock(team + 8 * MUTEX, team + 8 * CONDITION)
    helpers: list[int] = []
    # signals are for the threads of Python: one that a helper caught would not wake them
    faults = {getattr(signal, name) for name in _OWN_FAULTS if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
    try:
        while len(helpers) < count:
            helpers.append(libc.start_thread(native.helper, team))
    except OSError:
        pass  # the limit of the process or the system: those that started do the work
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return helpers


def _end_helpers(helpers: Sequence[int], team: int, memory: Array, native: Runner, pid: int) -> None:
    """End helpers and wait until they have; the team's memory lives as long as they may look at it."""
    del memory
    if helpers and pid == os.getpid():
        native.dismiss(team)
        for helper in helpers:
            libc.join_thread(helper)


def _timestamps_address(timestamps: Array, steps: int) -> int:
    if timestamps.dtype != np.int64 or timestamps.size <= steps or not timestamps.flags.c_contiguous:
        raise ValueError(
            f"timestamps: {timestamps.size} of {timestamps.dtype}; expected {steps + 1} of int64, one after another"
        )
    return int(timestamps.ctypes.data)
