"""Teams of threads that run segments together, and the pool that lends them to one run at a time."""

import atexit
import ctypes
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from engine.compiler.memory.alignment import address_of, aligned_empty
from engine.compiler.threads.runner import CONDITION, ENDED, INDEX, MUTEX, STATE, TEAM_WORDS, Runner, runner
from engine.compiler.threads.segment import Segment
from engine.dtypes import Array
from engine.run.stop import StopSignal


class ThreadTeam:
    """The calling thread and the helpers that work with it, asleep between runs.

    Helpers run native code without the GIL. They belong to the process that made them: in a forked child the caller
    does all the work. A team does one run at a time.

    Args:
        threads: how many work together, the caller among them. It makes do with fewer where the system does not give
            as many; results are the same.
    """

    def __init__(self, threads: int) -> None:
        # its functions are called as long as the team lives, even once it is closed
        self._native = runner()
        self._words = _team_words()
        self._address = address_of(self._words)
        self._pid = os.getpid()
        self._helpers = _start_helpers(threads - 1, self._native, self._words)

    @property
    def threads(self) -> int:
        """How many threads work together, the caller among them."""
        return 1 + (len(self._helpers) if self.is_ours else 0)

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
        if not (self._helpers and segment.is_wide and self.is_ours):
            return self._native.alone(*_arguments(segment, table_address, timestamps, stop))
        return self._native.together(*_arguments(segment, table_address, timestamps, stop), self._address)

    def close(self) -> None:
        """End the helpers; the caller works alone from here on. To be called between runs."""
        helpers, self._helpers = self._helpers, []
        if helpers and self.is_ours:
            self._native.dismiss(self._address)
            for helper in helpers:
                helper.join()


def run_segment(
    threads: int,
    segment: Segment,
    table_address: int,
    timestamps: Array | None = None,
    stop: StopSignal | None = None,
) -> int:
    """Run a segment on so many threads; all else as `ThreadTeam.run`."""
    if threads == 1 or not segment.is_wide:
        return runner().alone(*_arguments(segment, table_address, timestamps, stop))
    with teams.lease(threads) as team:
        return team.run(segment, table_address, timestamps, stop)


class ThreadTeamPool:
    """Pool of thread teams, which grows to the peak number of concurrent runs. Thread-safe."""

    def __init__(self) -> None:
        self.reset()

    @contextmanager
    def lease(self, threads: int) -> Iterator[ThreadTeam]:
        """Lend a team to a `with` block.

        Args:
            threads: how many work together, the caller among them; 1 takes no team's threads.
        """
        with self._lock:
            idle = self._idle[threads]
            team = idle.pop() if idle else None
        team = team or ThreadTeam(threads)
        try:
            yield team
        finally:
            if team.is_ours:
                with self._lock:
                    self._idle[threads].append(team)

    def close(self) -> None:
        """End the teams that are not lent; later leases make new ones."""
        with self._lock:
            idle = [team for teams in self._idle.values() for team in teams]
            self._idle.clear()
        for team in idle:
            team.close()

    def reset(self) -> None:
        """Forget all teams: in a forked child, which has none of their threads."""
        self._lock = threading.Lock()
        self._idle: defaultdict[int, list[ThreadTeam]] = defaultdict(list)


def _arguments(
    segment: Segment, table_address: int, timestamps: Array | None, stop: StopSignal | None
) -> tuple[int, int, int, int, int]:
    steps = len(segment.steps)
    stamps_address = 0 if timestamps is None else _timestamps_address(timestamps, steps)
    return segment.address, steps, table_address, stamps_address, 0 if stop is None else stop.address


def _timestamps_address(timestamps: Array, steps: int) -> int:
    if timestamps.dtype != np.int64 or timestamps.size <= steps or not timestamps.flags.c_contiguous:
        raise ValueError(
            f"timestamps: {timestamps.size} of {timestamps.dtype}; expected {steps + 1} of int64, one after another"
        )
    return int(timestamps.ctypes.data)


def _team_words() -> Array:
    """Return a team's words, as they are before its first run."""
    words = aligned_empty(8 * TEAM_WORDS).view(np.int64)
    words[:] = 0
    words[STATE], words[INDEX] = ENDED, 1
    library = ctypes.CDLL(None)
    library.pthread_mutex_init(ctypes.c_void_p(address_of(words[MUTEX:])), None)
    library.pthread_cond_init(ctypes.c_void_p(address_of(words[CONDITION:])), None)
    return words


def _start_helpers(count: int, native: Runner, words: Array) -> list[threading.Thread]:
    """Start helpers, as many as the system gives."""
    helpers: list[threading.Thread] = []
    for _ in range(count):
        # daemons: a run may be going on at exit; they hold what their native code is about to touch
        helper = threading.Thread(target=_help, args=(native, words), name="kernels", daemon=True)
        try:
            helper.start()
        except RuntimeError:  # the limit of the process or the system: those that started do the work
            break
        helpers.append(helper)
    return helpers


def _help(native: Runner, words: Array) -> None:
    native.help(address_of(words))


teams = ThreadTeamPool()
"""The teams of this process."""

atexit.register(teams.close)
os.register_at_fork(after_in_child=teams.reset)
