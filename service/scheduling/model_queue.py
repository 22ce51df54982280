"""The queue of one model, and the work that workers do for it."""

from collections.abc import Sequence
from math import inf
from typing import Any

from service.errors import ServiceError
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling.client_queue import ClientQueue
from service.scheduling.dynamic_batcher import DynamicBatcher
from service.scheduling.fair_share import FairShare, VirtualClock
from service.scheduling.policy import SchedulingPolicy
from service.scheduling.refusals import queue_full
from service.scheduling.run_estimate import RunEstimate
from service.scheduling.scheduled_call import ScheduledCall
from service.scheduling.service_rate import ServiceRate
from service.scheduling.trace_setting import TraceSetting
from service.scheduling.work_item import WorkItem

_BRIEF_SECONDS = 0.0005
"""Most that work takes which is brief."""
_BRIEF_WORKS = 32
"""Pieces of work in a row that were brief, after which the next one is expected to be brief as well."""


class ModelQueue:
    """Calls of one model that wait, and those that workers have taken. Not thread-safe.

    Times are those of `time.monotonic`, in seconds.

    Args:
        model: the model.
        policy: how its calls are scheduled.
        clock: the virtual time that all queues share.
        tracing: which runs are sampled.
        estimate: tells which runs are heavy.

    Attributes:
        model: the model.
        policy: how its calls are scheduled.
        share: how much of the workers' time it has had.
    """

    def __init__(
        self,
        model: LoadedModel,
        policy: SchedulingPolicy,
        clock: VirtualClock,
        tracing: TraceSetting,
        estimate: RunEstimate,
    ) -> None:
        self.model = model
        self.policy = policy
        self.share = FairShare(clock)
        self._rate = ServiceRate()
        self._tracing = tracing
        self._estimate = estimate
        self._undecoded = ClientQueue()
        self._batcher = DynamicBatcher(policy) if policy.max_batch_size > 1 else None
        self._running: set[ScheduledCall[Any]] = set()
        self._work: dict[WorkItem, tuple[float, float]] = {}
        self._brief_works = 0

    @property
    def waiting(self) -> int:
        """Number of calls that wait, for a worker or to be run together with others."""
        waiting = self._undecoded.length
        return waiting if self._batcher is None else waiting + self._batcher.length

    @property
    def running(self) -> int:
        """Number of calls that workers have taken, those that were given up since included."""
        return len(self._running)

    @property
    def is_brief(self) -> bool:
        """Whether the work for a call of a form that is known is expected to take no longer than a hand-over."""
        return self._brief_works >= _BRIEF_WORKS

    @property
    def is_idle(self) -> bool:
        """Whether no call waits and no worker works for the model."""
        return not self._work and not self.waiting

    def check_room(self, idle_workers: int, client: Peer = "") -> None:
        """Check that one more call of a client may wait, if a call of one that has more gives way.

        Args:
            idle_workers: number of workers without work.
            client: who sends the call.

        Raises:
            ServiceError: 503 `queue_full`.
        """
        if self.is_full(idle_workers) and self._overgrown(client) is None:
            raise queue_full(self.waiting, self.running, self.retry_after())

    def make_room(self, idle_workers: int, client: Peer) -> tuple[ScheduledCall[Any], ServiceError] | None:
        """Take a call out that gives way to one more of a client, if the queue is full.

        Args:
            idle_workers: number of workers without work.
            client: who sends the call.

        Returns:
            the call that was taken out, and what its client is to be told; None where there was room.

        Raises:
            ServiceError: 503 `queue_full`, as no client has more than this one.
        """
        if not self.is_full(idle_workers):
            return None
        displaced = self._overgrown(client)
        refusal = queue_full(self.waiting, self.running, self.retry_after(), gives_way=displaced is not None)
        if displaced is None:
            raise refusal
        self.discard(displaced)
        return displaced, refusal

    def _overgrown(self, client: Peer) -> ScheduledCall[Any] | None:
        return self._undecoded.overgrown(client, () if self._batcher is None else list(self._batcher))

    def is_full(self, idle_workers: int) -> bool:
        """Return whether one more call would have no room. It may be asked while others change the queue."""
        waiting = self.waiting
        if waiting < self.policy.queue_size:
            return False  # most often, so that nothing else is looked at
        return waiting - min(idle_workers, self.policy.workers - len(self._work)) >= self.policy.queue_size

    def retry_after(self) -> int:
        """Return the whole seconds until all calls of the queue are answered, at its recent rate."""
        return self._rate.retry_after(self.waiting + self.running)

    def push(self, scheduled: ScheduledCall[Any], now: float) -> None:
        """Add a call that waits."""
        if self.is_idle:
            self.share.join()
            self._rate.busy(now)
        self._undecoded.push(scheduled)

    def discard(self, scheduled: ScheduledCall[Any]) -> None:
        """Take a call out, if it waits."""
        if not self._undecoded.discard(scheduled) and self._batcher is not None:
            self._batcher.discard(scheduled)
        if self.is_idle:
            self._rate.idle()

    def drop_all(self) -> list[ScheduledCall[Any]]:
        """Take all calls out that wait; returns them, and those that workers have taken."""
        calls = [*self._undecoded, *(self._batcher or ())]
        for scheduled in calls:
            self.discard(scheduled)
        return [*calls, *self._running]

    def due(self) -> float:
        """Return when there is work for one more worker; inf where there is none."""
        if len(self._work) >= self.policy.workers:
            return inf
        if self._undecoded.length:
            return -inf
        return (
            self._batcher.due(self.share.mean) if self._batcher is not None and self._batcher.length else inf
        )

    def take(self, now: float) -> WorkItem:
        """Return work for a worker; to be called when it is due."""
        calls = [self._undecoded.pop() for _ in range(self._count_to_decode(now))]
        self._running.update(calls)
        work = self._make_work(calls)
        self._work[work] = now, self.share.begin()
        return work

    def form_batch(
        self, decoded: Sequence[ScheduledCall[Any]], work: WorkItem, now: float
    ) -> list[ScheduledCall[Any]]:
        """Have decoded calls wait for their batch; returns the batch that is due, no call where none is.

        Args:
            decoded: calls that can be run.
            work: that of the worker, with all calls that it has taken.
            now: the time.
        """
        if self._batcher is None:
            raise RuntimeError(f"model {self.model.name}: calls are run one by one")
        self._running.difference_update(work.calls)
        for scheduled in decoded:
            if scheduled.stop_reason() is None:
                self._batcher.add(scheduled)
        batch = self._batcher.take(now, self.share.mean) if self.works_on(work) else []
        self._running.update(batch)
        return batch

    def work_of(self, scheduled: ScheduledCall[Any]) -> WorkItem | None:
        """Return the work that a call is part of; None where no worker has taken it."""
        if scheduled not in self._running:
            return None
        return next((work for work in self._work if scheduled in work.calls), None)

    def works_on(self, work: WorkItem) -> bool:
        """Return whether a worker is at work on this, and another has not taken its place."""
        return work in self._work

    def abandon(self, work: WorkItem, now: float) -> None:
        """Count work that is in progress no longer, as another worker takes the place of its own."""
        started, charged = self._work.pop(work)
        self.share.end(charged, now - started)

    def finish(self, work: WorkItem, now: float) -> bool:
        """Note that a worker is done with its work; returns False where another has taken its place."""
        self._running.difference_update(work.calls)
        if work not in self._work:
            return False
        started, charged = self._work.pop(work)
        self.share.end(charged, now - started)
        self._brief_works = self._brief_works + 1 if now - started <= _BRIEF_SECONDS else 0
        self._rate.completed(len(work.calls), now)
        if self.is_idle:
            self._rate.idle()
        return True

    def _make_work(self, calls: list[ScheduledCall[Any]]) -> WorkItem:
        batcher = self._batcher
        is_batched = batcher is not None and not (len(calls) == 1 and batcher.is_run_alone)
        max_batch_size = batcher.policy.max_batch_size if batcher is not None and is_batched else 1
        return WorkItem(calls, max_batch_size, self._tracing.sample, self._estimate)

    def _count_to_decode(self, now: float) -> int:
        """Return how many calls to decode: what a batch still has room for, at least one where no batch is due."""
        if self._batcher is None:
            return 1
        if not self._batcher.length:
            return min(self._undecoded.length, self._batcher.policy.max_batch_size)
        room = max(0, self._batcher.policy.max_batch_size - self._batcher.length)
        is_due = self._batcher.due(self.share.mean) <= now
        return min(self._undecoded.length, room if is_due else max(1, room))
