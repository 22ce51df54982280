"""Queues and worker pool: what is too much is refused at the door, what is no longer wanted is dropped."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any
from weakref import WeakSet

from engine import RuntimeGraph
from service.errors import ServiceError
from service.loaded_model import LoadedModel
from service.scheduling.blas_threads import BlasThreads
from service.scheduling.fair_share import VirtualClock
from service.scheduling.job import Job
from service.scheduling.model_queue import ModelQueue, Turn
from service.scheduling.refusals import shutting_down

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
        self._queues: dict[RuntimeGraph, ModelQueue] = {}
        self._retired: WeakSet[RuntimeGraph] = WeakSet()
        self._clock = VirtualClock()
        self._turns = 0
        self._changed = threading.Condition()
        self._closed = False
        self._pool: list[threading.Thread] = []
        self._blas: BlasThreads | None = None

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Count the calls that wait, of one model or of all."""
        with self._changed:
            return sum(len(queue.waiting) for queue in self._chosen(model))

    def running(self, model: LoadedModel | None = None) -> int:
        """Count the calls that workers are on, given up or not, of one model or of all."""
        with self._changed:
            return sum(len(queue.running) for queue in self._chosen(model))

    def start(self) -> None:
        """Start the workers."""
        self._blas = BlasThreads()
        # not daemons: a thread that is killed inside a native kernel takes the process down with it
        self._pool = [threading.Thread(target=self._serve, name=f"worker-{n}") for n in range(self._size)]
        for thread in self._pool:
            thread.start()

    def check_room(self, model: LoadedModel) -> None:
        """Refuse early what `submit` would refuse: before its body is read.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._changed:
            self._room(model)

    def submit(self, job: Job[Any]) -> None:
        """Queue a job; its answer comes in its future.

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
        job.future.cancel()
        with self._changed:
            queue = self._queues.get(job.call.model.graph)
            if queue is not None:
                queue.discard(job)
                self._forget(queue)

    def retire(self, model: LoadedModel) -> None:
        """Forget a model's queue as soon as nothing of it waits or runs; calls that still come are taken."""
        with self._changed:
            self._retired.add(model.graph)
            queue = self._queues.get(model.graph)
            if queue is not None:
                self._forget(queue)

    def refuse_all(self, error: ServiceError) -> None:
        """Give all jobs up, and raise `error` where their answers are awaited."""
        for job in self._drop_all(error.message):
            if not job.future.done():
                job.future.set_exception(error)

    def close(self) -> None:
        """Take nothing more, drop what waits, and return when every worker has ended."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._drop_all("the server is shutting down")
        for thread in self._pool:
            thread.join()
        if self._blas is not None:
            self._blas.restore()

    def _drop_all(self, reason: str) -> list[Job[Any]]:
        with self._changed:
            jobs = [job for queue in self._queues.values() for job in queue.drop_all()]
        for job in jobs:
            job.stop(reason)
        return jobs

    def _chosen(self, model: LoadedModel | None) -> Sequence[ModelQueue]:
        if model is None:
            return list(self._queues.values())
        queue = self._queues.get(model.graph)
        return [] if queue is None else [queue]

    def _room(self, model: LoadedModel) -> ModelQueue:
        """Return a model's queue, if it has room."""
        if self._closed:
            raise shutting_down()
        queue = self._queues.get(model.graph)
        if queue is None:
            queue = self._queues[model.graph] = self._make_queue(model, self._clock)
        queue.check_room(self._size - self._turns)
        return queue

    def _forget(self, queue: ModelQueue) -> None:
        if queue.is_idle and queue.model.graph in self._retired:
            self._queues.pop(queue.model.graph, None)

    def _serve(self) -> None:
        while (turn := self._take()) is not None:
            turn.carry_out()
            # the worker is free before anyone knows the answer: who has it may count on a place for the next request
            self._finish(turn)
            hand_over(turn.jobs)
            del turn  # nothing of a request outlives it while the worker waits for the next

    def _take(self) -> Turn | None:
        with self._changed:
            while (queue := self._next()) is None:
                if self._closed:
                    return None
                self._changed.wait()
            turn = queue.take(monotonic())
            self._turns += 1
            if self._blas is not None:
                self._blas.begin(queue.policy.threads)
            return turn

    def _next(self) -> ModelQueue | None:
        """Return the queue whose turn it is, None where none has anything to do."""
        ready = (queue for queue in self._queues.values() if queue.has_turn())
        return min(ready, key=lambda queue: queue.share.tag, default=None)

    def _finish(self, turn: Turn) -> None:
        with self._changed:
            self._turns -= 1
            turn.queue.finish(turn, monotonic())
            self._forget(turn.queue)
            if self._blas is not None:
                self._blas.end(turn.queue.policy.threads)


def hand_over(jobs: Sequence[Job[Any]]) -> None:
    """Hand the answers of jobs to the event loop."""
    if jobs:
        # a closed loop has nobody left who waits
        with contextlib.suppress(RuntimeError):
            jobs[0].loop.call_soon_threadsafe(_deliver, jobs)


def _deliver(jobs: Sequence[Job[Any]]) -> None:
    for job in jobs:
        job.deliver()
