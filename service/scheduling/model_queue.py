"""The queue of one model, and the turns that workers take on it."""

from dataclasses import dataclass
from typing import Any

from service.errors import ServiceError
from service.loaded_model import LoadedModel
from service.scheduling.fair_share import FairShare, VirtualClock
from service.scheduling.job import Job
from service.scheduling.policy import Policy
from service.scheduling.priority_queue import PriorityQueue
from service.scheduling.refusals import queue_full
from service.scheduling.service_rate import ServiceRate
from service.scheduling.trace_setting import TraceSetting


@dataclass(slots=True, eq=False)
class Turn:
    """What one worker does for one model at a stretch.

    Attributes:
        queue: the model's queue.
        jobs: what it took from there.
        started: when, on the clock of `time.monotonic`.
        charged: seconds that the model was charged for it beforehand.
    """

    queue: "ModelQueue"
    jobs: list[Job[Any]]
    started: float
    charged: float

    def carry_out(self) -> None:
        """Decode, run and encode; in a worker. Raises nothing."""
        for job in self.jobs:
            if not job.decode():
                continue
            result = job.run(self.queue.tracing.sample())
            job.leads_run = True
            if result is not None:
                job.encode(result)


class ModelQueue:
    """Calls of one model that wait, and those that workers are on. Not safe for threads by itself.

    Attributes:
        model: the model.
        policy: how its calls are scheduled.
        share: what it has had of the workers' time.
        rate: how fast its calls are answered.
        tracing: which of its runs are traced unasked.
        waiting: calls that wait.
        running: calls that workers are on.
        turns: workers that are on it.
    """

    def __init__(
        self, model: LoadedModel, policy: Policy, clock: VirtualClock, tracing: TraceSetting
    ) -> None:
        self.model = model
        self.policy = policy
        self.share = FairShare(clock)
        self.rate = ServiceRate()
        self.tracing = tracing
        self.waiting = PriorityQueue()
        self.running: set[Job[Any]] = set()
        self.turns = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and no worker is on it."""
        return not self.waiting and not self.turns

    def check_room(self, idle_workers: int) -> None:
        """Refuse what is too much.

        Args:
            idle_workers: workers that have nothing to do.

        Raises:
            ServiceError: 503 `queue_full`.
        """
        idle = min(idle_workers, self.policy.workers - self.turns)
        if len(self.waiting) - idle >= self.policy.queue_size:
            raise self.full()

    def full(self) -> ServiceError:
        """Return the error of a call that finds no room."""
        waiting, running = len(self.waiting), len(self.running)
        return queue_full(waiting, running, self.rate.retry_after(waiting + running))

    def push(self, job: Job[Any], now: float) -> None:
        """Let a call wait."""
        if self.is_idle:
            self.share.join()
            self.rate.busy(now)
        self.waiting.push(job)

    def discard(self, job: Job[Any]) -> None:
        """Let a call wait no more."""
        self.waiting.discard(job)
        if self.is_idle:
            self.rate.idle()

    def drop_all(self) -> list[Job[Any]]:
        """Let nothing wait; returns what waited and what workers are on."""
        jobs = [*self.waiting, *self.running]
        for job in jobs:
            self.waiting.discard(job)
        return jobs

    def has_turn(self) -> bool:
        """Tell whether there is something for one more worker to do."""
        return bool(self.waiting) and self.turns < self.policy.workers

    def take(self, now: float) -> Turn:
        """Begin a turn."""
        jobs = [self.waiting.pop()]
        self.running.update(jobs)
        self.turns += 1
        return Turn(self, jobs, now, self.share.begin())

    def finish(self, turn: Turn, now: float) -> None:
        """End a turn."""
        self.running.difference_update(turn.jobs)
        self.turns -= 1
        self.share.end(turn.charged, now - turn.started)
        self.rate.completed(len(turn.jobs), now)
        if self.is_idle:
            self.rate.idle()
