"""Decoded calls of one model that wait for others to be run with."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from service.scheduling.batch_rule import BatchRule
from service.scheduling.job import Job
from service.scheduling.priority_queue import PriorityQueue
from service.scheduling.rows import Signature


@dataclass(frozen=True, slots=True)
class _Prospect:
    """The batch that a group of calls would be now.

    Attributes:
        jobs: its calls, in order.
        due: when it is to be run, on the clock of `time.monotonic`; -inf where nothing is gained by waiting.
    """

    jobs: Sequence[Job[Any]]
    due: float

    @property
    def rank(self) -> tuple[int, int]:
        """Priority and arrival of its first call."""
        return self.jobs[0].priority, self.jobs[0].number


class BatchFormer:
    """Groups of calls that can be run together. Not safe for threads by itself.

    A call of another signature than all others, one that wants its own run, or one larger than a batch may be, is a
    group of its own.
    """

    def __init__(self, rule: BatchRule) -> None:
        self.rule = rule
        self._sizes = rule.sizes
        self._groups: dict[Signature | Job[Any], PriorityQueue] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Any:
        return (job for group in self._groups.values() for job in group)

    def add(self, job: Job[Any]) -> None:
        """Let a decoded call wait for others."""
        self._groups.setdefault(job.group or job, PriorityQueue()).push(job)
        self._length += 1

    def discard(self, job: Job[Any]) -> None:
        """Let a call wait no more, if it does."""
        key = job.group or job
        group = self._groups.get(key)
        if group is None or not group.discard(job):
            return
        self._length -= 1
        if not group:
            del self._groups[key]

    def due(self, run_seconds: float) -> float:
        """Return when the first batch is to be run, inf where nothing waits.

        Args:
            run_seconds: what a run takes of late; deadlines are kept by as much.
        """
        return min((self._prospect(key, run_seconds).due for key in self._groups), default=inf)

    def take(self, now: float, run_seconds: float) -> list[Job[Any]]:
        """Take the most urgent batch out that is due; empty where none is."""
        prospects = [self._prospect(key, run_seconds) for key in self._groups]
        ready = [prospect for prospect in prospects if prospect.due <= now]
        if not ready:
            return []
        jobs = list(min(ready, key=lambda prospect: prospect.rank).jobs)
        for job in jobs:
            self.discard(job)
        return jobs

    def _prospect(self, key: Signature | Job[Any], run_seconds: float) -> _Prospect:
        group = self._groups[key]
        if isinstance(key, Job):
            return _Prospect([key], -inf)
        jobs: list[Job[Any]] = []
        items, even, preferred = 0, 0, 0
        is_full = False
        for job in group:
            if items + job.items > self.rule.max_size:
                is_full = True
                break
            jobs.append(job)
            items += job.items
            if items in self._sizes:
                even = len(jobs)
            if items in self.rule.preferred_sizes:
                preferred = len(jobs)
        if preferred and not is_full and items != self.rule.max_size:
            return _Prospect(jobs[:preferred], -inf)
        # those beyond a size that is run often wait for the next run, which comes at once
        chosen = jobs[:even] if even else jobs
        if is_full or items == self.rule.max_size:
            return _Prospect(chosen, -inf)
        return _Prospect(chosen, min(self._latest(job, run_seconds) for job in group))

    def _latest(self, job: Job[Any], run_seconds: float) -> float:
        """Return until when a call waits for others: half of its time and what a run takes are kept for the run."""
        kept = max(run_seconds, (job.deadline - job.arrived) / 2)
        return min(job.arrived + self.rule.max_delay, job.deadline - kept)
