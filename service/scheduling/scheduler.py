"""Queues and worker pool: what is too much is refused at the door, what is no longer wanted is dropped."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from weakref import WeakSet

from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.scheduling.blas_threads import BlasThreads
from service.scheduling.fair_share import VirtualClock
from service.scheduling.job import Job
from service.scheduling.model_queue import ModelQueue
from service.scheduling.policy import Policy
from service.scheduling.refusals import shutting_down
from service.scheduling.turn import Turn

QueueMaker = Callable[[LoadedModel, VirtualClock], ModelQueue]


class Scheduler:
    """One queue per model and the threads that work on them all.

    All but the workers' own methods are called on the event loop. A worker is free only when its thread truly is: a
    job that was given up keeps its worker until the layer that it was in has ended.

    Args:
        workers: threads, and so turns that are taken side by side.
        make_queue: makes the queue of a model that is asked for the first time.
    """

    def __init__(self, workers: int, make_queue: QueueMaker) -> None:
        self._size = workers
        self._make_queue = make_queue
        self._queues: dict[LoadedModel, ModelQueue] = {}
        self._retired: WeakSet[LoadedModel] = WeakSet()
        self._clock = VirtualClock()
        self._turns = 0
        self._idle = 0
        self._changed = threading.Condition()
        self._closed = False
        self._pool: list[threading.Thread] = []
        self._blas: BlasThreads | None = None

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Count the calls that wait, of one model or of all."""
        with self._changed:
            return sum(queue.waiting for queue in self._chosen(model))

    def running(self, model: LoadedModel | None = None) -> int:
        """Count the calls that workers are on, given up or not, of one model or of all."""
        with self._changed:
            return sum(queue.running for queue in self._chosen(model))

    def busy_workers(self) -> int:
        """Count the workers that have something to do."""
        with self._changed:
            return self._turns

    def start(self) -> None:
        """Start the workers."""
        self._blas = BlasThreads()
        # not daemons: a thread that is killed inside a native kernel takes the process down with it
        self._pool = [threading.Thread(target=self._serve, name=f"worker-{n}") for n in range(self._size)]
        for thread in self._pool:
            thread.start()

    def policy(self, model: LoadedModel) -> Policy:
        """Return how the calls of a model are scheduled."""
        queue = self._queues.get(model)
        if queue is None:
            with self._changed:
                queue = self._queue(model)
        return queue.policy

    def check_room(self, model: LoadedModel) -> None:
        """Refuse early what `submit` would refuse: before its body is read.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        queue = self._queues.get(model)
        if queue is None or self._closed:
            with self._changed:
                self._room(model)
                self._forget(self._queues[model])  # the call may not come after all
        else:
            # not locked, so not kept waiting by workers: `submit` looks again anyway
            queue.check_room(self._size - self._turns)

    def submit(self, job: Job[Any]) -> None:
        """Queue a job; it tells itself when it is over.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._changed:
            queue = self._room(job.call.model)
            queue.push(job, monotonic())
            self._changed.notify()

    def stop(self, job: Job[Any], reason: str) -> None:
        """Give a job up: dropped if it waits, stopped before its next layer if it runs."""
        job.stop(reason)
        with self._changed:
            queue = self._queues.get(job.call.model)
            if queue is not None:
                queue.discard(job)
                self._forget(queue)

    def retire(self, model: LoadedModel) -> None:
        """Forget a model's queue as soon as nothing of it waits or runs; calls that still come are taken."""
        with self._changed:
            self._retired.add(model)
            queue = self._queues.get(model)
            if queue is not None:
                self._forget(queue)

    def refuse_all(self, error: ServiceError) -> None:
        """Give all jobs up; each ends with `error`."""
        for job in self._drop_all(error.message):
            job.end(None, error)

    def close(self) -> None:
        """Take nothing more, drop what waits, and return when every worker has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._drop_all("the server is shutting down")
        for thread in self._pool:
            thread.join()
        if self._blas is not None:
            self._blas.close()
            self._blas = None

    def _drop_all(self, reason: str) -> list[Job[Any]]:
        with self._changed:
            jobs = [job for queue in self._queues.values() for job in queue.drop_all()]
        for job in jobs:
            job.stop(reason)
        return jobs

    def _chosen(self, model: LoadedModel | None) -> Sequence[ModelQueue]:
        if model is None:
            return list(self._queues.values())
        queue = self._queues.get(model)
        return [] if queue is None else [queue]

    def _room(self, model: LoadedModel) -> ModelQueue:
        """Return a model's queue, if it has room."""
        if self._closed:
            raise shutting_down()
        queue = self._queue(model)
        queue.check_room(self._size - self._turns)
        return queue

    def _queue(self, model: LoadedModel) -> ModelQueue:
        queue = self._queues.get(model)
        if queue is None:
            queue = self._queues[model] = self._make_queue(model, self._clock)
        return queue

    def _forget(self, queue: ModelQueue) -> None:
        if queue.is_idle and queue.model in self._retired:
            self._queues.pop(queue.model, None)

    def _serve(self) -> None:
        while (taken := self._take()) is not None:
            queue, turn = taken
            turn.carry_out(partial(self._form, queue, turn))
            # the worker is free before anyone knows the answer: who has it may count on a place for the next request
            self._finish(queue, turn)
            turn.hand_over()
            del taken, queue, turn  # nothing of a request outlives it while the worker waits for the next

    def _take(self) -> tuple[ModelQueue, Turn] | None:
        with self._changed:
            while True:
                now = monotonic()
                queue, due = self._next(now)
                if queue is not None:
                    break
                if self._closed:
                    return None
                self._idle += 1
                self._changed.wait(None if due == inf else due - now)
                self._idle -= 1
            turn = queue.take(now)
            self._turns += 1
            if self._blas is not None:
                self._blas.begin(queue.policy.threads)
            self._wake_another()
            return queue, turn

    def _next(self, now: float) -> tuple[ModelQueue | None, float]:
        """Return the queue whose turn it is, None where none has anything to do yet, and when the first will have."""
        first, earliest = None, inf
        for queue in self._queues.values():
            due = queue.due()
            earliest = min(earliest, due)
            if due <= now and (first is None or queue.share.tag < first.share.tag):
                first = queue
        return first, earliest

    def _wake_another(self) -> None:
        """Have another worker look, if one has nothing to do: for what is due now, or to wait until it is."""
        if self._idle and any(queue.due() < inf for queue in self._queues.values()):
            self._changed.notify()

    def _form(self, queue: ModelQueue, turn: Turn, decoded: Sequence[Job[Any]]) -> list[Job[Any]]:
        with self._changed:
            batch = queue.form(decoded, turn.jobs, monotonic())
            self._wake_another()
            return batch

    def _finish(self, queue: ModelQueue, turn: Turn) -> None:
        with self._changed:
            self._turns -= 1
            queue.finish(turn, monotonic())
            self._forget(queue)
            if self._blas is not None:
                self._blas.end(queue.policy.threads)
