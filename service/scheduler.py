"""Bounded queue and worker pool: what is too much is refused at the door, what is no longer wanted is dropped."""

import math
import threading
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from service.errors import ServiceError
from service.job import Job

Result = TypeVar("Result")

LONGEST_RETRY_AFTER = 60
"""Seconds; a client that is told to wait longer had better go elsewhere."""
_WEIGHT = 0.1
"""Weight of the latest run in the moving mean of run times."""


class Scheduler:
    """One queue and the threads that work on it.

    `submit` and `stop` are called on the event loop. A worker is free only when its thread truly is: a job that
    was given up keeps its worker until the layer that it was in has ended.

    Args:
        workers: threads, and so jobs that run side by side.
        threads: threads that the arithmetic of one job may use.
        queue_size: jobs that may wait while all workers are busy.
    """

    def __init__(self, workers: int, threads: int, queue_size: int) -> None:
        self._size = workers
        self._blas_threads = threads
        self._queue_size = queue_size
        self._waiting: deque[Job[Any]] = deque()
        self._running: set[Job[Any]] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._mean_seconds = 0.0
        self._pool: list[threading.Thread] = []
        self._limits: threadpool_limits | None = None

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Jobs that workers are on, given up or not."""
        return len(self._running)

    def start(self) -> None:
        """Start the workers."""
        self._limits = threadpool_limits(limits=self._blas_threads, user_api="blas")
        # not daemons: a thread that is killed inside a native kernel takes the process down with it
        self._pool = [threading.Thread(target=self._serve, name=f"worker-{n}") for n in range(self._size)]
        for thread in self._pool:
            thread.start()

    def check_room(self) -> None:
        """Refuse early what `submit` would refuse: before its body is read.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._changed:
            self._check_room()

    def submit(self, work: Callable[[Job[Result]], Result], deadline: float) -> Job[Result]:
        """Queue work; its result comes in the job's future.

        Args:
            work: called in a worker thread, with the job.
            deadline: when to give it up, on the clock of `time.monotonic`.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        job = Job(work, deadline)
        with self._changed:
            self._check_room()
            self._waiting.append(job)
            self._changed.notify()
        return job

    def stop(self, job: Job[Any], reason: str) -> None:
        """Give a job up: dropped if it waits, stopped before its next layer if it runs."""
        job.stop(reason)
        job.future.cancel()
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)

    def refuse_all(self, error: ServiceError) -> None:
        """Give all jobs up, and raise `error` where their results are awaited. Called on the event loop."""
        with self._changed:
            jobs = [*self._waiting, *self._running]
            self._waiting.clear()
        for job in jobs:
            job.stop(error.message)
            if not job.future.done():
                job.future.set_exception(error)

    def close(self) -> None:
        """Take nothing more, drop what waits, and return when every worker has ended."""
        with self._changed:
            self._closed = True
            for job in (*self._waiting, *self._running):
                job.stop("the server is shutting down")
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._pool:
            thread.join()
        if self._limits is not None:
            self._limits.restore_original_limits()

    def _check_room(self) -> None:
        if self._closed:
            raise shutting_down()
        idle = self._size - len(self._running)
        if len(self._waiting) - idle >= self._queue_size:
            seconds = self._retry_after()
            raise ServiceError(
                503,
                "queue_full",
                f"all workers are busy and {len(self._waiting)} requests wait already; "
                f"try again in {seconds} s",
                {"waiting": len(self._waiting), "running": len(self._running), "retry_after": seconds},
                {"Retry-After": str(seconds)},
            )

    def _retry_after(self) -> int:
        """Seconds until the queue, as it is now, is worked off at the rate of late."""
        backlog = (len(self._waiting) + len(self._running)) * self._mean_seconds / self._size
        return min(max(1, math.ceil(backlog)), LONGEST_RETRY_AFTER)

    def _serve(self) -> None:
        while (job := self._take()) is not None:
            hand_over = job.run()
            # the worker is free before anyone knows the result: who has it may count on a place for the next request
            self._finish(job)
            hand_over()
            del job, hand_over  # nothing of a request outlives it while the worker waits for the next

    def _take(self) -> Job[Any] | None:
        with self._changed:
            while not self._waiting:
                if self._closed:
                    return None
                self._changed.wait()
            job = self._waiting.popleft()
            self._running.add(job)
            return job

    def _finish(self, job: Job[Any]) -> None:
        seconds = monotonic() - job.started
        with self._changed:
            self._running.discard(job)
            if self._mean_seconds:
                self._mean_seconds += _WEIGHT * (seconds - self._mean_seconds)
            else:
                self._mean_seconds = seconds


def shutting_down() -> ServiceError:
    """Return the error of a request that comes while the server shuts down."""
    return ServiceError(
        503,
        "shutting_down",
        "the server is shutting down and takes no more requests",
        headers={"Connection": "close", "Retry-After": "1"},
    )
