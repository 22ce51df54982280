"""The queue of one model: which job is next, which one has no room, how much time the model has had, what is traced."""

import threading
from collections import ChainMap, Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import ceil, inf
from operator import itemgetter
from typing import Any

from service.context import Peer
from service.errors import ServiceError, queue_full
from service.scheduling.batch import Batcher, in_order
from service.scheduling.job import Job
from service.scheduling.policy import SchedulingPolicy

_WEIGHT = 0.1
"""Weight of the latest work in moving averages."""
LONGEST_RETRY_AFTER = 60
"""Seconds; the longest time that a client is asked to wait."""
_sampling = threading.Lock()


class TraceSetting:
    """Samples every N-th run of a model. Calls that ask for a trace get one whatever is set here.

    May be changed while the server runs, by any thread.

    Args:
        values: the values in force, by Triton's names; changes go into the first of its maps.

    Attributes:
        values: `trace_level`: `TIMESTAMPS`, or `OFF` for no samples; `trace_rate`: N, where every N-th run is sampled,
            0 for none; `trace_count`: how many runs are still to be sampled, -1 for no end. Models without a count of
            their own share the server's.
    """

    def __init__(self, values: ChainMap[str, Any]) -> None:
        self.values = values
        self._runs = 0

    @classmethod
    def of_server(cls, rate: int) -> "TraceSetting":
        """Return the setting of a server at its start."""
        start = {"trace_level": "TIMESTAMPS", "trace_rate": rate, "trace_count": -1}
        return cls(ChainMap({}, start))

    def for_model(self) -> "TraceSetting":
        """Return a new setting for a model, which takes all values from this one until it is changed."""
        return TraceSetting(self.values.new_child())

    def sample(self) -> bool:
        """Count a run; returns whether it is to be traced."""
        values, rate = self.values, self.values["trace_rate"]
        if not rate or values["trace_level"] == "OFF":
            return False
        with _sampling:
            self._runs += 1
            if self._runs % rate or not values["trace_count"]:
                return False
            if values["trace_count"] > 0:
                next(own for own in values.maps if "trace_count" in own)["trace_count"] -= 1
            return True


class ClientQueue:
    """Jobs by priority, 1 first; within a priority round-robin by client, those of one client in order of arrival.

    After J. Nagle, "On Packet Switches With Infinite Storage", IEEE Transactions on Communications 35(4), 1987. All
    methods but `evictable` take constant time.

    Attributes:
        length: number of jobs.
    """

    def __init__(self) -> None:
        self._priorities: dict[int, dict[Peer, dict[Job[Any], None]]] = {}
        self.length = 0

    def __iter__(self) -> Iterator[Job[Any]]:
        """Yield the jobs in the order of service."""
        for priority in sorted(self._priorities):
            rounds = zip_longest(*self._priorities[priority].values())
            yield from (job for job in chain.from_iterable(rounds) if job is not None)

    def push(self, job: Job[Any]) -> None:
        """Add a job; jobs are added in order of arrival."""
        self._priorities.setdefault(job.priority, {}).setdefault(job.client, {})[job] = None
        self.length += 1

    def pop(self) -> Job[Any]:
        """Remove and return the first job; its client's next one comes after those of other clients."""
        clients = self._priorities[min(self._priorities)]
        client, jobs = next(iter(clients.items()))
        job = next(iter(jobs))
        self.discard(job)
        if jobs:
            clients[client] = clients.pop(client)
        return job

    def discard(self, job: Job[Any]) -> bool:
        """Remove a job; returns whether it was present."""
        clients = self._priorities.get(job.priority, {})
        jobs = clients.get(job.client, {})
        if job not in jobs:
            return False
        del jobs[job]
        if not jobs:
            del clients[job.client]
            if not clients:
                del self._priorities[job.priority]
        self.length -= 1
        return True

    def evictable(self, client: Peer, others: Collection[Job[Any]] = ()) -> Job[Any] | None:
        """Return the job to evict for one more of a client: the last of the client with most jobs.

        None if that client would then have fewer than this one. After B. Suter et al., "Buffer management schemes for
        supporting TCP in gigabit routers", IEEE JSAC 17(6), 1999.

        Args:
            client: the client.
            others: jobs that have left this queue, and wait elsewhere; evicted last.
        """
        counts = Counter(job.client for job in others)
        for clients in self._priorities.values():
            counts.update({each: len(jobs) for each, jobs in clients.items()})
        largest, count = max(counts.items(), key=itemgetter(1), default=(client, 0))
        if count <= counts[client] + 1:
            return None
        queued = [job for job in self if job.client == largest]
        return max(queued or (job for job in others if job.client == largest), key=in_order)


class ServiceRate:
    """Calls served per second of busy time, recent ones counting most. Times are in seconds, of any one clock."""

    def __init__(self) -> None:
        self._calls = 0.0
        self._seconds = 0.0
        self._until = -inf

    def completed(self, calls: int, began: float, now: float) -> None:
        """Note that some calls have been served, the first of which came at `began`."""
        self._calls = self._calls * (1 - _WEIGHT) + calls
        self._seconds = self._seconds * (1 - _WEIGHT) + now - max(began, self._until)
        self._until = now

    def retry_after(self, backlog: int) -> int:
        """Return the whole seconds until `backlog` calls are served at this rate; 1 to `LONGEST_RETRY_AFTER`."""
        if not self._calls:
            return 1
        return min(max(1, ceil(backlog * self._seconds / self._calls)), LONGEST_RETRY_AFTER)


@dataclass(slots=True, eq=False)
class Work:
    """The jobs of one model that one worker has taken.

    Attributes:
        queue: the queue of the model.
        jobs: those that the worker has: to be decoded, then the batch that it forms.
        is_batched: whether they wait for a batch once they are decoded.
        started: when the worker took them.
        charged: worker time that was charged beforehand.
    """

    queue: "ModelQueue"
    jobs: list[Job[Any]]
    is_batched: bool
    started: float
    charged: float


class ModelQueue:
    """Jobs of one model that wait, and the work that workers have taken. Not thread-safe.

    Models share the workers by start-time fair queuing, after P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair
    Queueing", SIGCOMM 1996. The cost of work is known only when it ends. Therefore a model is charged its average cost
    when work begins, and the difference when it ends. Times are those of `time.monotonic`, in seconds.

    Args:
        policy: how its jobs are scheduled.
        tracing: which runs are sampled.

    Attributes:
        tag: start tag of its next work, in seconds of service; the model with the least tag is served next.
        mean: moving average of the duration of its work.
        work: what workers have taken.
        replaced: work whose worker another one has replaced.
        decoding: jobs whose large bodies wait for a decoder, or are there.
    """

    def __init__(self, policy: SchedulingPolicy, tracing: TraceSetting) -> None:
        self.policy = policy
        self.tracing = tracing
        self.tag = 0.0
        self.mean = 0.0
        self.work: set[Work] = set()
        self.replaced: set[Work] = set()
        self.decoding: set[Job[Any]] = set()
        self._rate = ServiceRate()
        self._undecoded = ClientQueue()
        self._batcher = Batcher(policy)

    @property
    def waiting(self) -> int:
        """Number of jobs that wait, for a worker, a decoder or their batch."""
        return self._undecoded.length + self._batcher.length + len(self.decoding)

    @property
    def running(self) -> int:
        """Number of jobs that workers have taken, including those cancelled since."""
        return sum(len(work.jobs) for work in (*self.work, *self.replaced))

    def room(self, idle_workers: int, client: Peer = "") -> tuple[Job[Any], ServiceError] | None:
        """Return the job to evict for one more of a client, and its error; None if there is room without.

        Args:
            idle_workers: number of workers without work.
            client: who sends the job.

        Raises:
            ServiceError: 503 `queue_full`, as no client has more jobs than this one.
        """
        free = min(idle_workers, self.policy.workers - len(self.work))
        if self.waiting < self.policy.queue_size + free:
            return None
        evictable = self._undecoded.evictable(client, [*self._batcher, *self.decoding])
        if evictable is None:
            raise self._refusal()
        return evictable, self._refusal(is_evicted=True)

    def _refusal(self, *, is_evicted: bool = False) -> ServiceError:
        """Return the error of a job without room, to be retried once the queue is done at its recent rate."""
        seconds = self._rate.retry_after(self.waiting + self.running)
        return queue_full(self.waiting, self.running, seconds, is_evicted=is_evicted)

    def push(self, job: Job[Any], virtual_time: float) -> None:
        """Add a job that waits for a worker; `virtual_time` is the start tag of the latest work of all models."""
        if not self.work and not self.waiting:
            self.tag = max(self.tag, virtual_time)  # no credit for the time in which it had no jobs
        self._undecoded.push(job)

    def discard(self, job: Job[Any]) -> None:
        """Remove a job, if it waits."""
        if not self._undecoded.discard(job):
            self._batcher.discard(job)
        self.decoding.discard(job)

    def drop_all(self) -> list[Job[Any]]:
        """Remove all jobs that wait; returns them, and those that workers have taken."""
        jobs = [*self._undecoded, *self._batcher, *self.decoding]
        for job in jobs:
            self.discard(job)
        return [*jobs, *(job for work in (*self.work, *self.replaced) for job in work.jobs)]

    def due(self) -> float:
        """Return when there is work for one more worker; inf if there is none."""
        if len(self.work) >= self.policy.workers:
            return inf
        if self._undecoded.length:
            return -inf
        return self._batcher.due(self.mean) if self._batcher.length else inf

    def take(self, now: float) -> Work:
        """Return work for a worker; to be called when it is due."""
        count = self._count_to_decode(now)
        # a job that is alone in its batch needs no signature
        is_alone = count == 1 and not self._batcher.length and not self.policy.max_queue_delay
        is_batched = self.policy.max_batch_size > 1 and not is_alone
        work = Work(self, [self._undecoded.pop() for _ in range(count)], is_batched, now, self.mean)
        self.tag += self.mean
        self.work.add(work)
        return work

    def form_batch(self, work: Work, decoded: Sequence[Job[Any]], now: float) -> None:
        """Have decoded jobs of some work wait for their batch; the work continues with the batch that is due, if any.

        Args:
            work: the work.
            decoded: its jobs that can run.
            now: the time.
        """
        for job in decoded:
            if job.stop_reason() is None:
                self._batcher.add(job)
        work.jobs = self._batcher.take(now, self.mean) if work in self.work else []

    def replace(self, work: Work, now: float) -> None:
        """Stop counting work in progress, as another worker replaces its own."""
        self.finish(work, now)
        self.replaced.add(work)

    def finish(self, work: Work, now: float) -> None:
        """Remove work that is done, and charge what it has cost beyond what it was charged when it began."""
        self.work.remove(work)
        seconds = now - work.started
        self.tag += seconds - work.charged
        self.mean = self.mean + _WEIGHT * (seconds - self.mean) if self.mean else seconds
        began = min((job.queued for job in work.jobs), default=work.started)
        self._rate.completed(len(work.jobs), began, now)

    def _count_to_decode(self, now: float) -> int:
        """Return how many jobs to decode: what a batch still has room for, at least one if no batch is due."""
        room = max(0, self.policy.max_batch_size - self._batcher.length)
        if not self._batcher.length or self._batcher.due(self.mean) > now:
            room = max(1, room)
        return min(self._undecoded.length, room)
