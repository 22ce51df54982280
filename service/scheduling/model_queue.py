"""The queue of one model, and the turns that workers take on it."""

from collections.abc import Sequence
from math import inf
from typing import Any

from service.repository.loaded_model import LoadedModel
from service.scheduling.batch_former import BatchFormer
from service.scheduling.fair_share import FairShare, VirtualClock
from service.scheduling.job import Job
from service.scheduling.policy import Policy
from service.scheduling.priority_queue import PriorityQueue
from service.scheduling.refusals import queue_full
from service.scheduling.service_rate import ServiceRate
from service.scheduling.trace_setting import TraceSetting
from service.scheduling.turn import Turn


class ModelQueue:
    """Calls of one model that wait, and those that workers are on. Not safe for threads by itself.

    Times are those of `time.monotonic`, in seconds.

    Attributes:
        model: the model.
        policy: how its calls are scheduled.
        share: what it has had of the workers' time.
    """

    def __init__(
        self, model: LoadedModel, policy: Policy, clock: VirtualClock, tracing: TraceSetting
    ) -> None:
        self.model = model
        self.policy = policy
        self.share = FairShare(clock)
        self._rate = ServiceRate()
        self._tracing = tracing
        self._undecoded = PriorityQueue()
        self._former = BatchFormer(policy.batches) if policy.batches is not None else None
        self._running: set[Job[Any]] = set()
        self._turns: dict[Turn, tuple[float, float]] = {}

    @property
    def waiting(self) -> int:
        """Calls that wait, for a worker or for others to be run with."""
        return len(self._undecoded) + (len(self._former) if self._former is not None else 0)

    @property
    def running(self) -> int:
        """Calls that workers are on, given up or not."""
        return len(self._running)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no worker is on it."""
        return not self._turns and not self.waiting

    def check_room(self, idle_workers: int) -> None:
        """Refuse what is too much.

        Args:
            idle_workers: workers that have nothing to do.

        Raises:
            ServiceError: 503 `queue_full`.
        """
        idle = min(idle_workers, self.policy.workers - len(self._turns))
        waiting, running = self.waiting, self.running
        if waiting - idle >= self.policy.queue_size:
            raise queue_full(waiting, running, self.retry_after())

    def retry_after(self) -> int:
        """Return the whole seconds until what is there is answered, at the rate of late."""
        return self._rate.retry_after(self.waiting + self.running)

    def push(self, job: Job[Any], now: float) -> None:
        """Let a call wait."""
        if self.is_idle:
            self.share.join()
            self._rate.busy(now)
        self._undecoded.push(job)

    def discard(self, job: Job[Any]) -> None:
        """Let a call wait no more, if it does."""
        if not self._undecoded.discard(job) and self._former is not None:
            self._former.discard(job)
        if self.is_idle:
            self._rate.idle()

    def drop_all(self) -> list[Job[Any]]:
        """Let nothing wait; returns what waited and what workers are on."""
        jobs = [*self._undecoded, *(self._former or ())]
        for job in jobs:
            self.discard(job)
        return [*jobs, *self._running]

    def due(self) -> float:
        """Return when there is something to do for one more worker; inf where there is nothing."""
        if len(self._turns) >= self.policy.workers:
            return inf
        if self._undecoded:
            return -inf
        return self._former.due(self.share.mean) if self._former is not None and len(self._former) else inf

    def take(self, now: float) -> Turn:
        """Begin a turn, once it is due."""
        jobs = [self._undecoded.pop() for _ in range(self._count_to_decode(now))]
        self._running.update(jobs)
        turn = Turn(jobs, 1 if self._former is None else self._former.rule.max_size, self._tracing)
        self._turns[turn] = now, self.share.begin()
        return turn

    def form(self, decoded: Sequence[Job[Any]], taken: Sequence[Job[Any]], now: float) -> list[Job[Any]]:
        """Let the decoded calls of a turn wait for their batch; returns the batch that is due, if one is.

        Args:
            decoded: calls that can be run.
            taken: all calls of the turn.
            now: the time.
        """
        if self._former is None:
            raise RuntimeError(f"model {self.model.name}: calls are run one by one")
        self._running.difference_update(taken)
        for job in decoded:
            if job.stop_reason() is None:
                self._former.add(job)
        batch = self._former.take(now, self.share.mean)
        self._running.update(batch)
        return batch

    def finish(self, turn: Turn, now: float) -> None:
        """End a turn."""
        started, charged = self._turns.pop(turn)
        self._running.difference_update(turn.jobs)
        self.share.end(charged, now - started)
        self._rate.completed(len(turn.jobs), now)
        if self.is_idle:
            self._rate.idle()

    def _count_to_decode(self, now: float) -> int:
        """Return how many calls to decode: what a batch can still take, at least one where none is due."""
        if self._former is None:
            return 1
        room = max(0, self._former.rule.max_size - len(self._former))
        is_due = self._former.due(self.share.mean) <= now
        return min(len(self._undecoded), room if is_due else max(1, room))
