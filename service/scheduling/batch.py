"""Batches of decoded jobs of one model, formed while requests come in."""

from bisect import insort
from collections.abc import Iterator, Sequence
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any

from service.repository.batching import run_sizes
from service.repository.rows import Signature
from service.scheduling.job import Job
from service.scheduling.policy import SchedulingPolicy

in_order = attrgetter("priority", "queued")
"""Key that sorts jobs by priority and arrival."""


class Batcher:
    """Decoded jobs that wait to share a run. Not thread-safe.

    Jobs of equal signature are a group, ordered by priority and arrival. A job without one is a group by itself.

    Args:
        policy: when a batch runs, and how large it may be.

    Attributes:
        length: number of jobs.
    """

    def __init__(self, policy: SchedulingPolicy) -> None:
        self.policy = policy
        self._sizes = {*run_sizes(policy.max_batch_size), *policy.preferred_batch_sizes}
        self._groups: dict[Signature | Job[Any], list[Job[Any]]] = {}
        self.length = 0

    def __iter__(self) -> Iterator[Job[Any]]:
        return chain.from_iterable(self._groups.values())

    def add(self, job: Job[Any]) -> None:
        """Add a decoded job."""
        insort(self._groups.setdefault(job.signature or job, []), job, key=in_order)
        self.length += 1

    def discard(self, job: Job[Any]) -> None:
        """Remove a job, if it is here."""
        key = job.signature or job
        group = self._groups.get(key, [])
        if job in group:
            group.remove(job)
            self.length -= 1
            if not group:
                del self._groups[key]

    def due(self, run_seconds: float) -> float:
        """Return when the first batch is due, on the clock of `time.monotonic`; inf if no job waits.

        Args:
            run_seconds: average duration of a run; as much is left before each deadline.
        """
        return min((self._candidate(group, run_seconds)[0] for group in self._groups.values()), default=inf)

    def take(self, now: float, run_seconds: float) -> list[Job[Any]]:
        """Remove and return the most urgent batch that is due; empty if none is."""
        candidates = [self._candidate(group, run_seconds) for group in self._groups.values()]
        batches = [batch for due, batch in candidates if due <= now]
        if not batches:
            return []
        batch = min(batches, key=lambda jobs: in_order(jobs[0]))
        for job in batch:
            self.discard(job)
        return batch

    def _candidate(self, group: Sequence[Job[Any]], run_seconds: float) -> tuple[float, list[Job[Any]]]:
        """Return when a batch of a group is due, -inf if nothing is gained by waiting; and its jobs."""
        policy = self.policy
        batch: list[Job[Any]] = []
        rows, compiled, preferred = 0, 0, 0
        for job in group:
            if batch and rows + job.rows > policy.max_batch_size:
                break
            batch.append(job)
            rows += job.rows
            if rows in self._sizes:
                compiled = len(batch)
            if rows in policy.preferred_batch_sizes:
                preferred = len(batch)
        is_full = len(batch) < len(group) or rows >= policy.max_batch_size or batch[0].signature is None
        if preferred and not is_full:
            return -inf, batch[:preferred]
        # jobs beyond a compiled size wait for the next run, which follows at once
        chosen = batch[: compiled or None]
        return -inf if is_full else min(self._latest(job, run_seconds) for job in group), chosen

    def _latest(self, job: Job[Any], run_seconds: float) -> float:
        """Return until when a job waits for others: half of its time is left for its run, or the average of a run."""
        left = max(run_seconds, (job.deadline - job.queued) / 2)
        return min(job.queued + self.policy.max_queue_delay, job.deadline - left)
