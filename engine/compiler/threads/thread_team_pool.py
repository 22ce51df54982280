"""The teams of a process, lent to one run at a time."""

import atexit
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from engine.compiler.threads.thread_team import ThreadTeam


class ThreadTeamPool:
    """Pool of thread teams, which grows to the peak number of concurrent runs.

    Thread-safe. A forked child begins with an empty pool.
    """

    def __init__(self) -> None:
        self._reset()
        _pools.add(self)

    @contextmanager
    def lease(self, threads: int) -> Iterator[ThreadTeam]:
        """Lend a team to a `with` block.

        Args:
            threads: how many work together, the caller among them; 1 takes no team's threads.
        """
        team, closings = self._take(threads)
        try:
            yield team
        finally:
            self._give_back(team, threads, closings)

    def close(self) -> None:
        """End the teams that are not lent, and the others once they come back; later leases make new ones."""
        with self._lock:
            self._closings += 1
            idle = [team for teams in self._idle.values() for team in teams]
            self._idle.clear()
        for team in idle:
            team.close()

    def _take(self, threads: int) -> tuple[ThreadTeam, int]:
        with self._lock:
            closings = self._closings
            idle = self._idle[threads]
            if idle:
                return idle.pop(), closings
        return ThreadTeam(threads), closings

    def _give_back(self, team: ThreadTeam, threads: int, closings: int) -> None:
        if not team.is_ours:
            return
        with self._lock:
            is_kept = closings == self._closings
            if is_kept:
                self._idle[threads].append(team)
        if not is_kept:
            team.close()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._idle: defaultdict[int, list[ThreadTeam]] = defaultdict(list)
        self._closings = 0


_pools: weakref.WeakSet[ThreadTeamPool] = weakref.WeakSet()


def _reset_pools() -> None:
    for pool in _pools:
        pool._reset()


teams = ThreadTeamPool()
"""The teams of this process."""

atexit.register(teams.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_pools)
