"""Worker threads, and the queues that they serve."""

import asyncio
import logging
import threading
from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from weakref import WeakSet

from service.decoding import DECODERS, leaving_large_bodies
from service.errors import ServiceError, out_of_memory, shutting_down
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling import execution
from service.scheduling.fair_executor import FairExecutor
from service.scheduling.job import Job
from service.scheduling.policy import SchedulingPolicy
from service.scheduling.queue import ModelQueue, VirtualClock, Work

GRACE_SECONDS = 1.0
"""Seconds that a worker may continue with cancelled jobs, before another one replaces it."""
DECODERS_AT_ONCE = 2
"""Large bodies that are decoded at the same time: each may take some hundred megabytes."""

_logger = logging.getLogger(__name__)


class WorkerPool:
    """Threads that run the jobs of all models, and a queue for each model.

    All methods but the workers' own are called on the event loop. A worker is free only when its thread is: a cancelled
    job keeps its worker until the layer in progress has ended. If that takes longer than `GRACE_SECONDS`, another
    thread replaces the worker, at most as many as there are workers, and the old one ends with its work.

    A job with a large body leaves its worker, is decoded in a decoder process, and returns to its queue. In between it
    counts as waiting.

    Args:
        name: prefix of the threads' names.
        workers: number of threads.
        make_queue: makes the queue of a model for its first job.
    """

    def __init__(
        self,
        name: str,
        workers: int,
        make_queue: Callable[[LoadedModel, VirtualClock], ModelQueue],
    ) -> None:
        self._name = name
        self._worker_count = workers
        self._make_queue = make_queue
        self._queues: dict[LoadedModel, ModelQueue] = {}
        self._retired: WeakSet[LoadedModel] = WeakSet()
        self._decoders = FairExecutor("decoding", DECODERS_AT_ONCE)
        self._decoding: dict[Job[Any], asyncio.Task[None]] = {}
        self._clock = VirtualClock()
        self._busy = 0
        self._idle = 0
        self._replaced = 0
        self._is_waking = False
        self._lock = threading.RLock()  # entered without a Python call, unlike the condition itself
        self._changed = threading.Condition(self._lock)
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._threads_started = 0
        self._loop: AbstractEventLoop | None = None

    # on the event loop

    def start(self) -> None:
        """Start the workers; jobs end on the running event loop."""
        self._loop = get_running_loop()
        self._is_waking = False
        # not daemons: a thread that is killed inside a native kernel takes the process down with it
        for _ in range(self._worker_count):
            self._start_thread()

    def close(self) -> None:
        """Accept no more jobs, drop those that wait, and return when every worker has ended."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        self._drop_all("the server is shutting down")
        for thread in list(self._threads):
            thread.join()

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs wait, for one model or for all."""
        with self._lock:
            return sum(queue.waiting for queue in self._queues_of(model))

    def running(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs workers have taken, cancelled or not, for one model or for all."""
        with self._lock:
            return sum(queue.running for queue in self._queues_of(model))

    def busy_workers(self) -> int:
        """Return how many workers have work, without waiting for the lock."""
        return self._busy

    def policy(self, model: LoadedModel) -> SchedulingPolicy:
        """Return how the jobs of a model are scheduled."""
        queue = self._queues.get(model)
        if queue is None:
            with self._lock:
                queue = self._queue(model)
        return queue.policy

    def check_room(self, model: LoadedModel, client: Peer) -> None:
        """Check that a model's queue has room for one more job of a client.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        queue = self._queues.get(model)
        # without the lock, which workers may hold: `submit` checks again
        if queue is None or self._closed or queue.is_full(self._worker_count - self._busy):
            with self._lock:
                queue = self._open_queue(model)
                queue.room(self._worker_count - self._busy, client)
                self._forget(queue)  # perhaps the job never comes

    def submit(self, job: Job[Any]) -> None:
        """Queue a job; one of a client that has more may be evicted, and ends.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._lock:
            queue = self._open_queue(job.model)
            try:
                evicted = queue.room(self._worker_count - self._busy, job.client)
            except ServiceError:
                self._forget(queue)  # its model may have been retired while the job came
                raise
            if evicted is not None:
                refusal = queue.refusal(is_evicted=True)
                queue.discard(evicted)
            queue.push(job, monotonic())
            wakes = self._idle and not self._is_waking and queue.due() < inf
            self._is_waking = self._is_waking or bool(wakes)
        if wakes:
            # once all that has arrived by now is queued: one worker runs it together
            get_running_loop().call_soon(self._wake)
        if evicted is not None:
            evicted.cancel(refusal.message)
            evicted.abort(refusal)

    def cancel(self, job: Job[Any], reason: str) -> None:
        """Drop a job that waits, or have its run stop before the next layer."""
        job.cancel(reason)
        decoding = self._decoding.pop(job, None)
        if decoding is not None:
            decoding.cancel()
        with self._lock:
            queue = self._queues.get(job.model)
            if queue is None:
                return
            queue.discard(job)
            work = queue.work_of(job)
            self._forget(queue)
        if work is not None:
            get_running_loop().call_later(GRACE_SECONDS, self._replace_worker, work)

    def retire(self, model: LoadedModel) -> None:
        """Forget a model's queue as soon as no job of it waits or runs; jobs that still come are accepted."""
        with self._lock:
            self._retired.add(model)
            for queue in self._queues_of(model):
                self._forget(queue)

    def refuse_all(self, error: ServiceError) -> None:
        """Cancel all jobs; each ends with `error`."""
        for job in self._drop_all(error.message):
            job.abort(error)

    def _send_to_decoder(self, job: Job[Any]) -> None:
        """Have a job with a large body go on in a decoder process."""
        if job.is_over:
            return  # it has left its queue when it was cancelled
        self._decoding[job] = get_running_loop().create_task(self._go_on_with_decoder(job))

    async def _go_on_with_decoder(self, job: Job[Any]) -> None:
        try:
            go_on = partial(DECODERS.call, partial(execution.go_on_with_decoder, job))
            await self._decoders.run(job.client, go_on, max(0.0, job.deadline - monotonic()))
        except (ServiceError, MemoryError) as error:  # it has not begun
            job.abort(out_of_memory() if isinstance(error, MemoryError) else error)
        finally:
            self._decoding.pop(job, None)
            self._return(job)
        _end([job])

    def _return(self, job: Job[Any]) -> None:
        """Have a job that has been decoded wait for a worker, unless it has ended."""
        with self._lock:
            queue = self._queues.get(job.model)
            if queue is None or job not in queue.decoding:
                return
            queue.decoding.remove(job)
            if job.decoded is not None and not job.is_over and not self._closed:
                queue.push(job, monotonic())
                self._wake_another()
            self._forget(queue)

    def _wake(self) -> None:
        with self._lock:
            self._is_waking = False
            self._changed.notify()

    def _replace_worker(self, work: Work) -> None:
        """Have another thread replace the one that is still at work on jobs that have all ended."""
        queue = work.queue
        with self._lock:
            has_room = not self._closed and self._replaced < self._worker_count
            if not has_room or work not in queue.work or not all(job.is_over for job in work.jobs):
                return
            try:
                thread = self._start_thread()
            except RuntimeError as error:  # the system has no room for another thread
                _logger.warning("model %s: a worker is stuck: %s", queue.model.name, error)
                return
            queue.replace(work, monotonic())
            self._replaced += 1
            self._busy -= 1
            self._forget(queue)
        _logger.warning(
            "model %s: %s replaces a worker that is still busy with cancelled requests",
            queue.model.name,
            thread.name,
        )

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._serve, name=f"{self._name}-{self._threads_started}")
        self._threads_started += 1
        thread.start()
        self._threads.append(thread)
        return thread

    # with the lock

    def _drop_all(self, reason: str) -> list[Job[Any]]:
        with self._lock:
            jobs = [job for queue in self._queues.values() for job in queue.drop_all()]
        for job in jobs:
            job.cancel(reason)
        return jobs

    def _queues_of(self, model: LoadedModel | None) -> Sequence[ModelQueue]:
        if model is None:
            return list(self._queues.values())
        queue = self._queues.get(model)
        return [] if queue is None else [queue]

    def _open_queue(self, model: LoadedModel) -> ModelQueue:
        """Return a model's queue, unless the server shuts down."""
        if self._closed:
            raise shutting_down()
        return self._queue(model)

    def _queue(self, model: LoadedModel) -> ModelQueue:
        queue = self._queues.get(model)
        if queue is None:
            queue = self._queues[model] = self._make_queue(model, self._clock)
        return queue

    def _forget(self, queue: ModelQueue) -> None:
        if queue.is_idle and queue.model in self._retired:
            self._queues.pop(queue.model, None)

    def _next(self, now: float) -> tuple[ModelQueue | None, float]:
        """Return the queue to serve next, None if none has work yet; and when the first has work."""
        first, earliest = None, inf
        for queue in self._queues.values():
            due = queue.due()
            earliest = min(earliest, due)
            if due <= now and (first is None or queue.share.tag < first.share.tag):
                first = queue
        return first, earliest

    def _wake_another(self) -> None:
        """Wake an idle worker if there is more work, so that it does the work or waits until it is due."""
        if self._idle and any(queue.due() < inf for queue in self._queues.values()):
            self._changed.notify()

    # on a worker

    def _serve(self) -> None:
        with leaving_large_bodies():
            while (work := self._take()) is not None:
                self._execute(work)
                # free before a result is known: a client that has its response may count on room for its next request
                goes_on = self._finish(work)
                self._deliver(work.jobs)
                if not goes_on:
                    with self._lock:
                        self._threads.remove(threading.current_thread())
                    return
                del work  # while a worker waits, it keeps nothing of a request alive

    def _take(self) -> Work | None:
        with self._lock:
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
            work = queue.take(now)
            self._busy += 1
            self._wake_another()
            return work

    def _finish(self, work: Work) -> bool:
        """Note that a worker has done its work; returns whether its thread looks for more."""
        queue = work.queue
        with self._lock:
            is_replaced = not queue.finish(work, monotonic())
            if is_replaced:
                self._replaced -= 1
            else:
                self._busy -= 1
            self._forget(queue)
            return not is_replaced

    def _execute(self, work: Work) -> None:
        """Decode, run and encode."""
        decoded = [job for job in list(work.jobs) if self._decode(work, job)]
        if work.is_batched:
            decoded = self._form_batch(work, decoded)
        if not decoded:
            return
        execution.run(decoded, work.queue.tracing.sample)
        for job in decoded:
            if job.needs_decoder:
                self._leave_to_decoder(work, job)

    def _decode(self, work: Work, job: Job[Any]) -> bool:
        """Decode a job; returns whether it is to run now."""
        outcome, job.outcome = job.outcome, None
        if outcome is not None:  # a pipeline's, whose steps have run
            if job.stop_reason() is None:
                execution.encode(job, outcome)
            if job.needs_decoder:
                self._leave_to_decoder(work, job)
            return False
        is_ready = execution.decode(job)
        if job.needs_decoder:
            self._leave_to_decoder(work, job)  # at once: decoding the next one may take long
        return is_ready

    def _form_batch(self, work: Work, decoded: Sequence[Job[Any]]) -> list[Job[Any]]:
        """Have decoded jobs wait for their batch; returns the one that is due."""
        ended = [job for job in work.jobs if job.status is not None]
        for job in decoded:
            execution.set_signature(job, work.queue.policy.max_batch_size)
        with self._lock:
            work.queue.form_batch(work, decoded, monotonic())
            self._wake_another()
        self._deliver(ended)
        return work.jobs

    def _leave_to_decoder(self, work: Work, job: Job[Any]) -> None:
        """Leave a job to a thread with a decoder, by way of the event loop."""
        with self._lock:
            work.jobs = [other for other in work.jobs if other is not job]
            if job.stop_reason() is not None:
                return
            work.queue.decoding.add(job)
        self._call_loop(self._send_to_decoder, job)

    def _deliver(self, jobs: Sequence[Job[Any]]) -> None:
        if jobs:
            self._call_loop(_end, jobs)

    def _call_loop(self, function: Callable[..., None], argument: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(function, argument)


def _end(jobs: Iterable[Job[Any]]) -> None:
    """End jobs by their results; on the event loop."""
    for job in jobs:
        if job.status is None:
            continue
        try:
            job.end(job.status, job.response, job.error)
        except Exception:  # the other jobs have to end as well
            _logger.exception("the result of a request could not be delivered")
