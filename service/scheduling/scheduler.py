"""The queues of all models, and the pool of workers that serves them."""

import logging
import threading
from asyncio import get_running_loop
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import Any
from weakref import WeakSet

from service.errors import ServiceError
from service.heavy_work import leave_heavy_work
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling.blas_thread_limit import BlasThreadLimit
from service.scheduling.fair_share import VirtualClock
from service.scheduling.lone_calls import LoneCalls
from service.scheduling.loop_inbox import DirectInbox, LoopInbox
from service.scheduling.model_queue import ModelQueue
from service.scheduling.policy import SchedulingPolicy
from service.scheduling.refusals import shutting_down
from service.scheduling.scheduled_call import ScheduledCall
from service.scheduling.work_item import WorkItem

GRACE_SECONDS = 1.0
"""Seconds that a worker may go on with calls that were given up, before another takes its place."""

_DIRECT = DirectInbox()
_logger = logging.getLogger(__name__)

QueueMaker = Callable[[LoadedModel, VirtualClock], ModelQueue]


class Scheduler:
    """One queue for each model, and the threads that work on all of them.

    All methods but the workers' own are called on the event loop. A worker is free only when its thread is: a call that
    was given up keeps its worker until the layer that was in progress has ended. Where that takes longer than
    `GRACE_SECONDS`, another thread takes the worker's place, and the old one ends with its work. There are never more
    of these than workers.

    Args:
        workers: number of threads.
        make_queue: makes the queue of a model when its first call comes.
        heavy: takes the calls that are heavy; started and closed with this one. None: they are treated as all others.
        name: what the threads are called.
        limits_blas: whether it limits the threads of BLAS; one scheduler of the process does.
    """

    def __init__(
        self,
        workers: int,
        make_queue: QueueMaker,
        heavy: "Scheduler | None" = None,
        name: str = "worker",
        *,
        limits_blas: bool = True,
    ) -> None:
        self._heavy = heavy
        self._name = name
        self._limits_blas = limits_blas
        self._worker_count = workers
        self._threads_started = 0
        self._replaced = 0
        self._make_queue = make_queue
        self._queues: dict[LoadedModel, ModelQueue] = {}
        self._retired: WeakSet[LoadedModel] = WeakSet()
        self._coming: set[ScheduledCall[Any]] = set()
        self._clock = VirtualClock()
        self._busy = 0
        self._idle = 0
        self._is_waking = False
        self._lone = LoneCalls()
        self._lock = threading.RLock()  # entered without a call of Python's, unlike the condition itself
        self._changed = threading.Condition(self._lock)
        self._closed = False
        self._pool: list[threading.Thread] = []
        self._blas: BlasThreadLimit | None = None
        self._inbox: LoopInbox | None = None

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Return how many calls wait, for one model or for all."""
        with self._lock:
            waiting = sum(queue.waiting for queue in self._chosen(model))
        return waiting if self._heavy is None else waiting + self._heavy.waiting(model)

    def running(self, model: LoadedModel | None = None) -> int:
        """Return how many calls workers have taken, given up or not, for one model or for all."""
        with self._lock:
            running = sum(queue.running for queue in self._chosen(model))
        return running if self._heavy is None else running + self._heavy.running(model)

    def busy_workers(self) -> int:
        """Return how many workers have work, without waiting for the lock."""
        return self._busy

    def start(self) -> None:
        """Start the workers; calls end on the event loop that runs now."""
        self._inbox = LoopInbox(get_running_loop())
        self._is_waking = False
        if self._limits_blas:
            self._blas = BlasThreadLimit()
        if self._heavy is not None:
            self._heavy.start()
        # not daemons: a thread that is killed inside a native kernel takes the process down with it
        for _ in range(self._worker_count):
            self._start_thread(self._inbox)

    def _start_thread(self, inbox: LoopInbox) -> threading.Thread:
        name = f"{self._name}-{self._threads_started}"
        thread = threading.Thread(target=self._serve, args=(inbox,), name=name)
        self._threads_started += 1
        thread.start()
        self._pool.append(thread)
        return thread

    def policy(self, model: LoadedModel) -> SchedulingPolicy:
        """Return how the calls of a model are scheduled."""
        queue = self._queues.get(model)
        if queue is None:
            with self._lock:
                queue = self._queue(model)
        return queue.policy

    def check_room(self, model: LoadedModel, client: Peer) -> None:
        """Check that a model's queue takes one more call of a client.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        queue = self._queues.get(model)
        # without the lock, which workers may hold: `submit` checks again
        if queue is None or self._closed or queue.is_full(self._worker_count - self._busy):
            with self._lock:
                queue = self._open_queue(model)
                queue.check_room(self._worker_count - self._busy, client)
                self._forget(queue)  # perhaps the call never comes

    def submit(self, scheduled: ScheduledCall[Any]) -> None:
        """Queue a call, which ends through its completion; one of a client that has more may give way, and end.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._lock:
            queue = self._open_queue(scheduled.call.model)
            try:
                displaced = queue.make_room(self._worker_count - self._busy, scheduled.call.client)
            except ServiceError:
                self._forget(queue)  # its model may have been retired while the call came
                raise
            queue.push(scheduled, monotonic())
            self._lone.arrive(queue, scheduled, not (self._busy or self._is_waking))
            wakes = self._idle and not self._is_waking and queue.due() < inf
            if wakes:
                self._is_waking = True
            else:
                self._lone.take()  # a worker is awake: the next call may be long in coming, and keeps no model alive
        if wakes:
            # when all that has arrived by now is queued: to wake a thread takes time, and one worker runs them together
            scheduled.loop.call_soon(self._wake)
        if displaced is not None:
            call, refusal = displaced
            call.cancellation.cancel(refusal.message)
            call.completion.abort(refusal)

    def _wake(self) -> None:
        with self._lock:
            self._is_waking = False
            queue = self._lone.take()
            if queue is None or self._busy or self._closed or queue.waiting != 1:
                self._changed.notify()
                return
            work = self._begin(queue, monotonic())
        work.execute(partial(self._form_batch, queue, work), self._leave, _DIRECT)
        self._finish(queue, work)
        work.deliver(_DIRECT)
        with self._lock:
            self._wake_another()  # a worker looks for more work when it has done its own, as for a batch to be due

    def cancel(self, scheduled: ScheduledCall[Any], reason: str) -> None:
        """Drop a call that waits, or have its run stop before the next layer."""
        scheduled.cancellation.cancel(reason)
        if self._heavy is not None and scheduled.progress.is_heavy:
            self._heavy.cancel(scheduled, reason)
        with self._lock:
            queue = self._queues.get(scheduled.call.model)
            if queue is None:
                return
            queue.discard(scheduled)
            work = queue.work_of(scheduled)
            self._forget(queue)
        if work is not None:
            scheduled.loop.call_later(GRACE_SECONDS, self._replace_worker, queue, work)

    def take_over(self, scheduled: ScheduledCall[Any]) -> None:
        """Queue a call that a worker has left, unless it has ended; it ends with an error where there is no room."""
        self._coming.discard(scheduled)
        if scheduled.completion.is_over:
            return
        try:
            self.submit(scheduled)
        except ServiceError as error:
            scheduled.completion.abort(error)

    def _replace_worker(self, queue: ModelQueue, work: WorkItem) -> None:
        """Have another thread take the place of the one that is still at work for calls that have all ended."""
        with self._lock:
            has_room = not self._closed and self._replaced < self._worker_count
            if self._inbox is None or not has_room or not queue.works_on(work) or not work.is_unwanted:
                return
            try:
                thread = self._start_thread(self._inbox)
            except RuntimeError as error:  # the system has no room for another thread
                _logger.warning("model %s: a worker is stuck: %s", queue.model.name, error)
                return
            queue.abandon(work, monotonic())
            self._replaced += 1
            self._busy -= 1
            self._forget(queue)
        _logger.warning(
            "model %s: %s takes the place of a worker that is still busy with calls that were given up",
            queue.model.name,
            thread.name,
        )

    def retire(self, model: LoadedModel) -> None:
        """Forget a model's queue as soon as no call of it waits or runs; calls that still come are taken."""
        if self._heavy is not None:
            self._heavy.retire(model)
        with self._lock:
            self._retired.add(model)
            for queue in self._chosen(model):
                self._forget(queue)

    def refuse_all(self, error: ServiceError) -> None:
        """Give all calls up; each ends with `error`."""
        for scheduled in self._drop_all(error.message):
            scheduled.completion.abort(error)

    def close(self) -> None:
        """Take no more calls, drop those that wait, and return when every worker has ended."""
        if self._heavy is not None:
            self._heavy.close()
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        self._drop_all("the server is shutting down")
        for thread in list(self._pool):
            thread.join()
        if self._inbox is not None:
            self._inbox.close()
            self._inbox = None
        if self._blas is not None:
            self._blas.close()
            self._blas = None

    def _drop_all(self, reason: str) -> list[ScheduledCall[Any]]:
        with self._lock:
            calls = [scheduled for queue in self._queues.values() for scheduled in queue.drop_all()]
            calls += self._coming
        for scheduled in calls:
            scheduled.cancellation.cancel(reason)
        return calls if self._heavy is None else calls + self._heavy._drop_all(reason)

    def _chosen(self, model: LoadedModel | None) -> Sequence[ModelQueue]:
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

    def _leave(self, scheduled: ScheduledCall[Any]) -> None:
        """Pass a heavy call on, by way of the event loop; called by a worker."""
        if self._heavy is not None and self._inbox is not None:
            self._heavy._coming.add(scheduled)  # until then it is in no queue, and yet to be found
            self._inbox.call(self._heavy.take_over, scheduled)

    def _serve(self, inbox: LoopInbox) -> None:
        if self._heavy is not None:
            leave_heavy_work()
        while (taken := self._take()) is not None:
            queue, work = taken
            work.execute(partial(self._form_batch, queue, work), self._leave, inbox)
            # free before a result is known: a client that has its answer may count on a place for its next request
            goes_on = self._finish(queue, work)
            work.deliver(inbox)
            if not goes_on:
                with self._lock:
                    self._pool.remove(threading.current_thread())
                return
            del taken, queue, work  # while a worker waits, it keeps nothing of a request alive

    def _take(self) -> tuple[ModelQueue, WorkItem] | None:
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
            work = self._begin(queue, now)
            self._wake_another()
            return queue, work

    def _begin(self, queue: ModelQueue, now: float) -> WorkItem:
        work = queue.take(now)
        self._busy += 1
        if self._blas is not None:
            self._blas.begin(queue.policy.threads)
        return work

    def _next(self, now: float) -> tuple[ModelQueue | None, float]:
        """Return the queue to serve next, None where none has work yet; and when the first has work."""
        first, earliest = None, inf
        for queue in self._queues.values():
            due = queue.due()
            earliest = min(earliest, due)
            if due <= now and (first is None or queue.share.tag < first.share.tag):
                first = queue
        return first, earliest

    def _wake_another(self) -> None:
        """Wake an idle worker where there is more work, so that it does the work or waits until it is due."""
        if not self._idle:
            return
        for queue in self._queues.values():
            if queue.due() < inf:
                self._changed.notify()
                return

    def _form_batch(
        self, queue: ModelQueue, work: WorkItem, decoded: Sequence[ScheduledCall[Any]]
    ) -> list[ScheduledCall[Any]]:
        with self._lock:
            batch = queue.form_batch(decoded, work, monotonic())
            self._wake_another()
            return batch

    def _finish(self, queue: ModelQueue, work: WorkItem) -> bool:
        """Note that a worker is done with its work; returns whether its thread looks for more."""
        with self._lock:
            is_replaced = not queue.finish(work, monotonic())
            if is_replaced:
                self._replaced -= 1
            else:
                self._busy -= 1
            self._forget(queue)
            if self._blas is not None:
                self._blas.end(queue.policy.threads)
            return not is_replaced
