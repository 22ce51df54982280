"""Batches of decoded calls of one model, formed while requests come in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from service.scheduling.policy import SchedulingPolicy
from service.scheduling.priority_queue import PriorityQueue
from service.scheduling.rows import Signature
from service.scheduling.scheduled_call import ScheduledCall


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The batch that a group of calls would be run as now.

    Attributes:
        calls: its calls, in order.
        due: when it is to be run, on the clock of `time.monotonic`; -inf where nothing is gained by waiting.
    """

    calls: Sequence[ScheduledCall[Any]]
    due: float

    @property
    def rank(self) -> tuple[int, int]:
        """Priority and arrival of its first call."""
        return self.calls[0].priority, self.calls[0].number


class DynamicBatcher:
    """Decoded calls that wait to be run together with others. Not thread-safe.

    Calls of equal signature are a group. A call that has none, as it is larger than a batch or wants a run of its own,
    is a group by itself.

    Args:
        policy: when a batch is run, and how large it may be.

    Attributes:
        length: number of calls; each request asks for it several times.
    """

    def __init__(self, policy: SchedulingPolicy) -> None:
        self.policy = policy
        self._sizes = policy.batch_sizes
        self._groups: dict[Signature | ScheduledCall[Any], PriorityQueue] = {}
        self.length = 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[ScheduledCall[Any]]:
        return (scheduled for group in self._groups.values() for scheduled in group)

    @property
    def is_run_alone(self) -> bool:
        """Whether a call that came by itself is a batch by itself: none waits that it could join, nor does it wait."""
        return not self.length and not self.policy.max_queue_delay

    def add(self, scheduled: ScheduledCall[Any]) -> None:
        """Add a decoded call."""
        self._groups.setdefault(scheduled.progress.signature or scheduled, PriorityQueue()).push(scheduled)
        self.length += 1

    def discard(self, scheduled: ScheduledCall[Any]) -> None:
        """Take a call out, if it is in."""
        key = scheduled.progress.signature or scheduled
        group = self._groups.get(key)
        if group is None or not group.discard(scheduled):
            return
        self.length -= 1
        if not group:
            del self._groups[key]

    def due(self, run_seconds: float) -> float:
        """Return when the first batch is to be run; inf where no call waits.

        Args:
            run_seconds: what a run takes on average; so much is kept free before each deadline.
        """
        return min((self._candidate(key, run_seconds).due for key in self._groups), default=inf)

    def take(self, now: float, run_seconds: float) -> list[ScheduledCall[Any]]:
        """Take out the most urgent batch that is due; empty where none is."""
        candidates = [self._candidate(key, run_seconds) for key in self._groups]
        ready = [candidate for candidate in candidates if candidate.due <= now]
        if not ready:
            return []
        calls = list(min(ready, key=lambda candidate: candidate.rank).calls)
        for scheduled in calls:
            self.discard(scheduled)
        return calls

    def _candidate(self, key: Signature | ScheduledCall[Any], run_seconds: float) -> _Candidate:
        group = self._groups[key]
        if isinstance(key, ScheduledCall):
            return _Candidate([key], -inf)
        calls: list[ScheduledCall[Any]] = []
        items, even, preferred = 0, 0, 0
        is_full = False
        for scheduled in group:
            if items + scheduled.progress.items > self.policy.max_batch_size:
                is_full = True
                break
            calls.append(scheduled)
            items += scheduled.progress.items
            if items in self._sizes:
                even = len(calls)
            if items in self.policy.preferred_batch_sizes:
                preferred = len(calls)
        if preferred and not is_full and items != self.policy.max_batch_size:
            return _Candidate(calls[:preferred], -inf)
        # calls beyond a size that programs are compiled for wait for the next run, which follows at once
        chosen = calls[:even] if even else calls
        if is_full or items == self.policy.max_batch_size:
            return _Candidate(chosen, -inf)
        return _Candidate(chosen, min(self._latest(scheduled, run_seconds) for scheduled in group))

    def _latest(self, scheduled: ScheduledCall[Any], run_seconds: float) -> float:
        """Return until when a call waits for others: half of its time is kept for its run, or what a run takes."""
        kept = max(run_seconds, (scheduled.deadline - scheduled.arrived) / 2)
        return min(scheduled.arrived + self.policy.max_queue_delay, scheduled.deadline - kept)
