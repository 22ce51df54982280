"""Accepts jobs from the protocols, queues them, has workers run them, and returns their responses."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from logging import getLogger
from math import inf
from operator import attrgetter
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from starlette.requests import ClientDisconnect
from starlette.types import Receive
from threadpoolctl import threadpool_limits

from engine import RunStoppedError
from service.config.settings import Settings
from service.context import Peer
from service.decoding import DECODERS
from service.errors import ServiceError, out_of_memory, shutting_down, timed_out
from service.fairness import FairExecutor
from service.repository.loaded_model import LoadedModel
from service.scheduling import worker
from service.scheduling.job import CallObserver, CallStatus, Job, ProtocolName, Timestamps
from service.scheduling.pipeline_run import PipelineRun, name_step
from service.scheduling.policy import scheduling_policy
from service.scheduling.queue import ModelQueue, TraceSetting, Work

Payload = TypeVar("Payload")
WATCH_DELAY_SECONDS = 0.02
"""Seconds before a client is watched: most responses come sooner, and a task for each would cost more."""
GRACE_SECONDS = 1.0
"""Seconds that a worker may continue with cancelled jobs, before another one replaces it."""
DECODERS_AT_ONCE = 2
"""Large bodies that are decoded at the same time: each may take some hundred megabytes."""
_STATUSES = {503: CallStatus.REJECTED, 504: CallStatus.CANCELED}
_logger = getLogger(__name__)


class Scheduler:
    """Queues jobs, has worker threads run them, and gives observers each one that has ended.

    Methods are called on the event loop, but for those of workers; `waiting`, `running` and `busy_workers` may be
    called on any thread.

    A worker is free only when its thread is: a cancelled job keeps its worker until the layer in progress has ended. If
    that takes longer than `GRACE_SECONDS`, as in a layer that hangs, another thread replaces the worker, at most as
    many as there are workers, and the old one ends with its work.

    A job with a large body leaves its worker, is decoded in a decoder process, and returns to its queue. In between it
    counts as waiting.

    Args:
        settings: the server's settings, for what a model's own `model.toml` does not set.
        observers: receive each job that has ended.

    Attributes:
        server_tracing: which runs are sampled, of models that do not set it themselves.
        mirror: sees every job before it is queued, and its future; None, unless a model has shadow runs.
    """

    def __init__(self, settings: Settings, observers: Sequence[CallObserver] = ()) -> None:
        self._settings = settings
        self._worker_count = settings.worker_count
        self._observers = observers
        self.server_tracing = TraceSetting.of_server(settings.trace_rate)
        self.mirror: Callable[[Job[Any], asyncio.Future[Any]], None] | None = None
        self._tracing: dict[str, TraceSetting] = {}
        self._queues: WeakKeyDictionary[LoadedModel, ModelQueue] = WeakKeyDictionary()
        """Jobs keep their models: the queue of one that is no longer served goes with the last job."""
        self._decoders = FairExecutor("decoding", DECODERS_AT_ONCE)
        self._virtual_time = 0.0
        """Start tag of the latest work, see `ModelQueue.tag`."""
        self._busy = 0
        self._replaced = 0
        self._idle = 0
        self._lock = threading.RLock()  # entered without a Python call, unlike the condition itself
        self._changed = threading.Condition(self._lock)
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._threads_started = 0
        self._loop: asyncio.AbstractEventLoop
        self._blas: threadpool_limits | None = None

    def start(self) -> None:
        """Start the workers, and limit BLAS to the server's `threads`; models' own `threads` are those of kernels.

        Jobs end on the running event loop.
        """
        # OpenBLAS obeys the first thread that sets a limit, and ignores all others while that lives
        self._blas = threadpool_limits(self._settings.thread_count, user_api="blas")
        self._loop = asyncio.get_running_loop()
        for _ in range(self._worker_count):
            self._start_thread()

    def close(self) -> None:
        """Accept no more jobs, drop those that wait, and return when every worker has ended."""
        with self._lock:
            self._closed = True
            self._changed.notify_all()
        self._drop_all("the server is shutting down")
        for thread in self._threads:
            thread.join()
        if self._blas is not None:
            self._blas.restore_original_limits()

    def check_room(self, model: LoadedModel, client: Peer = "") -> None:
        """Check that a model's queue, and those of its steps, have room for one more job of a client.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        with self._lock:
            if self._closed:
                raise shutting_down()
            self._queue(model).room(self._worker_count - self._busy, client)
        for step in model.steps:
            try:
                self.check_room(step.model, client)
            except ServiceError as error:
                raise name_step(step.config.name, error) from error

    def record_refusal(
        self,
        model: LoadedModel,
        protocol: ProtocolName,
        request_id: str,
        received_ns: int,
        error: ServiceError | ClientDisconnect,
    ) -> None:
        """Give the observers a request that is never queued.

        Args:
            model: the model that it names.
            protocol: the protocol that it came by.
            request_id: its id.
            received_ns: `perf_counter_ns` of the moment when its head had arrived.
            error: why it is not.
        """
        status = CallStatus.CANCELED
        if isinstance(error, ServiceError):
            status = _STATUSES.get(error.status, CallStatus.OTHER)
        job = Job[None](model, protocol, request_id, _never, _never, Timestamps(received_ns))
        job.end(status, error)
        self._observe(job)

    async def run(self, job: Job[Payload], receive: Receive | None = None) -> Payload:
        """Queue a job, and return its response.

        Args:
            job: the job.
            receive: the ASGI channel of its request, whose body was read; a client that disconnects is seen there.
                None: the task that calls this is cancelled then.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`, 504 `timeout`, 422 or 503 if the model fails on its
                inputs, or what its `decode` or `encode` raised.
            ClientDisconnect: the client has left.
        """
        with self._lock:
            policy = self._queue(job.model).policy
        job.admit(policy.timeout, policy.priority)
        future: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        job.future = future
        if self.mirror is not None:
            self.mirror(job, future)
        leave = partial(self.cancel, job, "the client left")
        with nullcontext() if receive is None else watch_client(receive, lambda: leave(ClientDisconnect())):
            try:
                if job.model.steps:
                    is_sampled = self.trace_setting(job.model).sample()
                    await PipelineRun(self, job, self._settings.limits, is_sampled).run()
                if not job.is_over:
                    self._enqueue(job)
                return await future
            except asyncio.CancelledError as error:
                leave(error)
                raise
            finally:
                del future  # it has the error, whose traceback refers to this frame

    def cancel(self, job: Job[Any], reason: str, error: BaseException) -> None:
        """End a job with an error, unless it has ended; its run stops before the model's next layer.

        Args:
            job: the job.
            reason: why the run stops.
            error: the error for its client.
        """
        if job.is_over:
            return
        if job.ending is None:
            self._drop(job, reason)
        self._abort(job, error)

    def end(
        self,
        job: Job[Payload],
        status: CallStatus,
        response: Payload | None = None,
        error: BaseException | None = None,
    ) -> None:
        """End a job, unless it has ended: observers get it, and `run` its response or its error."""
        future = job.future
        if job.is_over or future is None:
            return
        job.end(status, error)
        if job.timer is not None:
            job.timer.cancel()
        # an error's traceback refers to the job: together they must not keep the request alive
        job.timer = job.future = job.response = job.error = None
        # a copy, as a worker may still be in the context itself
        job.context.copy().run(self._observe, job)
        if future.done():
            return  # the task that waited was cancelled
        if error is None:
            future.set_result(response)  # type: ignore[arg-type]  # there is one if there is no error
        elif isinstance(error, RunStoppedError):  # a worker saw the deadline before the event loop did
            future.set_exception(timed_out(job.timeout or 0.0))
        else:
            future.set_exception(error)

    def refuse_all(self, error: ServiceError) -> None:
        """Cancel all jobs; each ends with `error`."""
        for job in self._drop_all(error.message):
            self._abort(job, error)

    def trace_setting(self, model: LoadedModel) -> TraceSetting:
        """Return the setting that samples the runs of a model; all versions of a name share one."""
        setting = self._tracing.get(model.name)
        return setting or self._tracing.setdefault(model.name, self.server_tracing.for_model())

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs wait, for one model or for all."""
        with self._lock:
            return sum(queue.waiting for of, queue in self._queues.items() if model in (None, of))

    def running(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs workers have taken, cancelled or not, for one model or for all."""
        with self._lock:
            return sum(queue.running for of, queue in self._queues.items() if model in (None, of))

    def busy_workers(self) -> int:
        """Return how many workers have work, without waiting for a lock that workers may hold."""
        return self._busy

    # of workers, on their threads

    def take(self) -> Work | None:
        """Return the next work of a worker, which waits for it; None if there will be none."""
        with self._lock:
            while True:
                now = monotonic()
                dues = {queue: queue.due() for queue in self._queues.values()}
                if ready := [queue for queue, due in dues.items() if due <= now]:
                    break
                if self._closed:
                    return None
                earliest = min(dues.values(), default=inf)
                self._idle += 1
                self._changed.wait(None if earliest == inf else earliest - now)
                self._idle -= 1
            queue = min(ready, key=attrgetter("tag"))
            self._virtual_time = max(self._virtual_time, queue.tag)
            work = queue.take(now)
            self._busy += 1
            self._wake_another()
            return work

    def form_batch(self, work: Work, decoded: Sequence[Job[Any]]) -> list[Job[Any]]:
        """Have decoded jobs wait for their batch; returns the one that is due, with which the work continues."""
        with self._lock:
            work.queue.form_batch(work, decoded, monotonic())
            self._wake_another()
        return work.jobs

    def leave_to_decoder(self, work: Work, job: Job[Any]) -> None:
        """Leave a job to a thread with a decoder, by way of the event loop."""
        with self._lock:
            work.jobs = [other for other in work.jobs if other is not job]
            if job.stop_reason() is not None:
                return
            work.queue.decoding.add(job)
        self._call_loop(self._send_to_decoder, job)

    def finish(self, work: Work) -> bool:
        """Note that a worker has done its work; returns whether its thread looks for more."""
        queue = work.queue
        with self._lock:
            if work in queue.replaced:
                queue.replaced.remove(work)
                self._replaced -= 1
                return False
            queue.finish(work, monotonic())
            self._busy -= 1
            return True

    def deliver(self, jobs: Sequence[Job[Any]]) -> None:
        """Have jobs end by their results."""
        if jobs:
            self._call_loop(self._end_all, jobs)

    def _call_loop(self, function: Callable[..., None], argument: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function, argument)

    # with the lock

    def _queue(self, model: LoadedModel) -> ModelQueue:
        queue = self._queues.get(model)
        if queue is None:
            policy = scheduling_policy(model.config, self._settings, model.batching)
            queue = self._queues[model] = ModelQueue(policy, self.trace_setting(model))
        return queue

    def _wake_another(self) -> None:
        """Wake an idle worker if there is more work, so that it does the work or waits until it is due."""
        with self._lock:
            if self._idle and any(queue.due() < inf for queue in self._queues.values()):
                self._changed.notify()

    # on the event loop

    def _enqueue(self, job: Job[Any]) -> None:
        """Queue a job, or end it if it has no room; one of a client that has more may be evicted, and ends."""
        try:
            with self._lock:
                if self._closed:
                    raise shutting_down()
                queue = self._queue(job.model)
                evicted = queue.room(self._worker_count - self._busy, job.client)
                queue.push(job, self._virtual_time)
        except ServiceError as error:
            self.end(job, CallStatus.REJECTED, error=error)
            return
        job.timer = self._loop.call_later(max(0.0, job.deadline - monotonic()), self._expire, job)
        if self._idle:
            # once all that has arrived by now is queued: one worker runs it together
            self._loop.call_soon(self._wake_another)
        if evicted is not None:
            other, refusal = evicted
            self.cancel(other, refusal.message, refusal)

    def _drop(self, job: Job[Any], reason: str) -> None:
        """Drop a job that waits, or have its run stop before the next layer."""
        job.cancel(reason)
        if job.decoding is not None:
            job.decoding.cancel()
        with self._lock:
            queue = self._queues.get(job.model)
            if queue is None:
                return
            queue.discard(job)
            stuck = [work for work in queue.work if job in work.jobs]
        for work in stuck:
            self._loop.call_later(GRACE_SECONDS, self._replace_worker, work)

    def _drop_all(self, reason: str) -> list[Job[Any]]:
        with self._lock:
            jobs = [job for queue in self._queues.values() for job in queue.drop_all()]
        for job in jobs:
            job.cancel(reason)
        return jobs

    def _expire(self, job: Job[Any]) -> None:
        self.cancel(job, "its time is up", timed_out(job.timeout or 0.0))

    def _abort(self, job: Job[Any], error: BaseException) -> None:
        """End a job with an error, unless it has ended; a run in progress goes on."""
        never_ran = isinstance(error, ServiceError) and not job.timestamps.forward_start
        self.end(job, CallStatus.REJECTED if never_ran else CallStatus.CANCELED, error=error)

    def _end_all(self, jobs: Iterable[Job[Any]]) -> None:
        """End jobs by the results that they have."""
        for job in jobs:
            if job.ending is not None:
                self.end(job, job.ending, job.response, job.error)

    def _observe(self, job: Job[Any]) -> None:
        for observer in self._observers:
            try:
                observer.observe(job)
            except Exception:  # the client has to get its response all the same
                _logger.exception("the end of a request could not be recorded")

    def _send_to_decoder(self, job: Job[Any]) -> None:
        """Have a job with a large body go on in a decoder process."""
        if not job.is_over:  # else it has left its queue when it was cancelled
            job.decoding = asyncio.get_running_loop().create_task(self._go_on_with_decoder(job))

    async def _go_on_with_decoder(self, job: Job[Any]) -> None:
        try:
            go_on = partial(DECODERS.call, partial(worker.go_on_with_decoder, job))
            await self._decoders.run(job.client, go_on, max(0.0, job.deadline - monotonic()))
        except (ServiceError, MemoryError) as error:  # it has not begun
            self._abort(job, out_of_memory() if isinstance(error, MemoryError) else error)
        finally:
            job.decoding = None
            self._return(job)
        self._end_all([job])

    def _return(self, job: Job[Any]) -> None:
        """Have a job that has been decoded wait for a worker, unless it has ended."""
        with self._lock:
            queue = self._queues.get(job.model)
            if queue is None or job not in queue.decoding:
                return
            queue.decoding.remove(job)
            if job.decoded is not None and not job.is_over and not self._closed:
                queue.push(job, self._virtual_time)
                self._wake_another()

    def _replace_worker(self, work: Work) -> None:
        """Have another thread replace the one that is still at work on jobs that have all ended."""
        with self._lock:
            has_room = not self._closed and self._replaced < self._worker_count
            if not has_room or work not in work.queue.work or not all(job.is_over for job in work.jobs):
                return
            thread = self._start_thread()
            work.queue.replace(work, monotonic())
            self._replaced += 1
            self._busy -= 1
        _logger.warning("%s replaces a worker that is still busy with cancelled requests", thread.name)

    def _start_thread(self) -> threading.Thread:
        # not a daemon: a thread that is killed inside a native kernel takes the process down with it
        name = f"worker-{self._threads_started}"
        thread = threading.Thread(target=worker.serve, args=(self,), name=name)
        self._threads_started += 1
        thread.start()
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        return thread


def _never(*_: object) -> Any:
    raise RuntimeError("a refused request is neither decoded nor encoded")


@contextmanager
def watch_client(receive: Receive, on_disconnect: Callable[[], None]) -> Iterator[None]:
    """Call a function if the client disconnects within this context; on the event loop.

    Args:
        receive: the ASGI channel of a request whose body was read to the end.
        on_disconnect: called once.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        on_disconnect()

    timer = loop.call_later(WATCH_DELAY_SECONDS, lambda: tasks.append(loop.create_task(watch())))
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()
