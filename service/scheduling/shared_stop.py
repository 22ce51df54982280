"""The end of a run that several calls share."""

import threading
from collections.abc import Sequence
from typing import Any

from engine.stop import StopSignal
from service.scheduling.job import Job


class SharedStop(StopSignal):
    """Stops a run when all of its calls are given up, or the last deadline has passed.

    Args:
        jobs: the calls.
    """

    def __init__(self, jobs: Sequence[Job[Any]]) -> None:
        super().__init__(max(job.deadline for job in jobs))
        self._waiting = len(jobs)
        self._count_lock = threading.Lock()
        for job in jobs:
            job.when_stopped(self._give_up_one)

    def _give_up_one(self, reason: str) -> None:
        with self._count_lock:
            self._waiting -= 1
            is_last = not self._waiting
        if is_last:
            self.stop(reason)
