"""Accepts jobs from the protocols, has workers run them, and returns their responses."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from http import HTTPStatus
from logging import getLogger
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive
from threadpoolctl import threadpool_limits

from service.config.settings import Settings
from service.errors import ServiceError, timed_out
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job
from service.scheduling.pipeline_run import PipelineRun, name_step, step_status
from service.scheduling.policy import scheduling_policy
from service.scheduling.queue import ModelQueue, VirtualClock
from service.scheduling.record import CallObserver, CallRecord, CallStatus, SurfaceName, Timestamps
from service.scheduling.trace_setting import TraceSetting
from service.scheduling.worker import WorkerPool

Payload = TypeVar("Payload")
DoneCallback = Callable[[Payload | None, BaseException | None], None]
"""Called on the event loop with the response of a job, or with its error."""
WATCH_DELAY_SECONDS = 0.02
"""Seconds before a client is watched: most responses come sooner, and a task for each would cost more."""
_logger = getLogger(__name__)


class Scheduler:
    """Queues jobs, has workers run them, and gives observers a record of how each one ended.

    Methods are called on the event loop; `retire`, `waiting`, `running` and `busy_workers` may be called on any thread.

    Args:
        settings: the server's settings, for what a model's own `model.toml` does not set.
        observers: receive the record of each job that has ended.

    Attributes:
        server_tracing: which runs are sampled, of models that do not set it themselves.
        mirror: sees every job before it is queued, and returns the one to queue in its place, and what to call when
            that has ended; None, unless a model has shadow runs.
    """

    def __init__(self, settings: Settings, observers: Sequence[CallObserver] = ()) -> None:
        self._settings = settings
        self._observers = observers
        self.server_tracing = TraceSetting(settings.trace_rate)
        self.mirror: Callable[[Job[Any], DoneCallback[Any]], tuple[Job[Any], DoneCallback[Any]]] | None = None
        self._blas: threadpool_limits | None = None
        self._tracing: dict[str, TraceSetting] = {}
        self._pool = WorkerPool("worker", settings.worker_count, self._make_queue)

    def start(self) -> None:
        """Start the workers, and limit BLAS to the server's `threads`; models' own `threads` are those of kernels."""
        # threadpoolctl obeys the first thread that sets a limit, and ignores all others while that lives
        self._blas_thread = ThreadPoolExecutor(1, "blas-threads")
        limit = partial(threadpool_limits, self._settings.thread_count, user_api="blas")
        self._blas = self._blas_thread.submit(limit).result()
        self._pool.start()

    def close(self) -> None:
        """Accept no more jobs, drop those that wait, and return when every worker has ended."""
        self._pool.close()
        if self._blas is not None:
            self._blas_thread.submit(self._blas.restore_original_limits)
            self._blas_thread.shutdown()
            self._blas = None

    def refuse_all(self, error: ServiceError) -> None:
        """Cancel all jobs; each ends with `error`."""
        self._pool.refuse_all(error)

    def check_room(self, model: LoadedModel, client: Peer = "") -> None:
        """Check that a model's queue has room for one more job of a client.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        self._pool.check_room(model, client)
        for step in model.steps:
            try:
                self._pool.check_room(step.model, client)
            except ServiceError as error:
                raise name_step(step.config.name, error) from error

    def record_refusal(
        self,
        model: LoadedModel,
        surface: SurfaceName,
        request_id: str,
        received_ns: int,
        error: ServiceError | ClientDisconnect,
    ) -> None:
        """Give the observers the record of a request that never becomes a job.

        Args:
            model: the model that it names.
            surface: the protocol that it came by.
            request_id: its id.
            received_ns: `perf_counter_ns` of the moment when its head had arrived.
            error: why it does not become one.
        """
        self._observe(
            CallRecord(
                model=model.name,
                version=model.version,
                surface=surface,
                request_id=request_id,
                status=_status_of(error),
                timestamps=Timestamps(received=received_ns),
                error=str(error) or type(error).__name__,
            )
        )

    def submit(self, job: Job[Payload], done: DoneCallback[Payload]) -> Job[Payload]:
        """Queue a job; returns it, or the one in its place.

        Args:
            job: the job.
            done: called once, unless this raises: with what the job's `encode` returned, or with what `run` raises.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        if self.mirror is not None:
            job, done = self.mirror(job, done)
        policy = self._pool.policy(job.model)
        job.admit(policy.timeout, policy.priority)
        try:
            if job.model.steps:
                self._start_steps(job)
            else:
                self._pool.submit(job)
        except ServiceError as error:
            job.on_end = partial(self._end, _ignore)
            job.abort(error)
            raise
        job.on_end = partial(self._end, done)
        if not job.model.steps:  # the steps have timers of their own
            job.timer = asyncio.get_running_loop().call_later(job.deadline - job.queued, self._expire, job)
        return job

    async def run(self, job: Job[Payload], receive: Receive | None = None) -> Payload:
        """Submit a job, and return its response.

        Args:
            job: the job.
            receive: the ASGI channel of its request, whose body was read; a client that disconnects is seen there.
                None: the task that calls this is cancelled then.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`, 504 `timeout`, 422 or 503 if the model fails on its
                inputs, or what its `decode` or `encode` raised.
            ClientDisconnect: the client has left.
        """
        future: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        job = self.submit(job, partial(_resolve, future))
        leave = partial(self.cancel, job, "the client left")
        with nullcontext() if receive is None else watch_client(receive, lambda: leave(ClientDisconnect())):
            try:
                return await future
            except asyncio.CancelledError as error:
                leave(error)
                raise

    def cancel(self, job: Job[Any], reason: str, error: BaseException) -> None:
        """End a job with an error, unless it has ended; its run stops before the model's next layer.

        Args:
            job: the job.
            reason: why the run stops.
            error: the error for its client.
        """
        if job.is_over:
            return
        if job.status is None:
            self._pool.cancel(job, reason)
        job.abort(error)
        if job.step is not None:
            self.cancel(job.step, reason, error)

    def retire(self, model: LoadedModel) -> None:
        """Forget a model as soon as no job of it waits or runs; jobs that still come for it are accepted."""
        self._pool.retire(model)

    def trace_setting(self, model: LoadedModel) -> TraceSetting:
        """Return the setting that samples the runs of a model; all versions of a name share one."""
        setting = self._tracing.get(model.name)
        return setting or self._tracing.setdefault(model.name, self.server_tracing.for_model())

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs wait, for one model or for all."""
        return self._pool.waiting(model)

    def running(self, model: LoadedModel | None = None) -> int:
        """Return how many jobs workers have taken, cancelled or not, for one model or for all."""
        return self._pool.running(model)

    def busy_workers(self) -> int:
        """Return how many workers have work, without waiting for a lock that workers may hold."""
        return self._pool.busy_workers()

    def _start_steps(self, job: Job[Any]) -> None:
        """Run the steps of a pipeline, each as a job of its own; no worker waits for another.

        Raises:
            ServiceError: the queue of the first step is full, or the server shuts down.
        """
        is_sampled = self.trace_setting(job.model).sample()
        run = PipelineRun(job, self._settings.limits, is_sampled, self.submit, partial(self._end_steps, job))
        run.begin_step()

    def _end_steps(self, job: Job[Any], error: BaseException | None) -> None:
        """Have a worker encode the response of a pipeline whose steps have run, or end it with the error of a step."""
        if job.is_over:
            return
        if error is None:
            try:
                self._pool.submit(job)
            except ServiceError as refusal:
                error = refusal
            else:
                left = max(0.0, job.deadline - monotonic())
                job.timer = asyncio.get_running_loop().call_later(left, self._expire, job)
                return
        self._pool.cancel(job, "a step has failed")
        job.end(step_status(error), error=error)

    def _expire(self, job: Job[Any]) -> None:
        self.cancel(job, "its time is up", timed_out(job.timeout or 0.0))

    def _end(
        self,
        done: DoneCallback[Payload],
        record: CallRecord,
        response: Payload | None,
        error: BaseException | None,
    ) -> None:
        self._observe(record)
        done(response, error)

    def _observe(self, record: CallRecord) -> None:
        for observer in self._observers:
            try:
                observer.observe(record)
            except Exception:  # the client has to get its response all the same
                _logger.exception("the end of a request could not be recorded")

    def _make_queue(self, model: LoadedModel, clock: VirtualClock) -> ModelQueue:
        policy = scheduling_policy(model.config, self._settings, model.batching)
        return ModelQueue(model, policy, clock, self.trace_setting(model))


def _status_of(error: ServiceError | ClientDisconnect) -> CallStatus:
    if isinstance(error, ClientDisconnect):
        return CallStatus.CANCELED
    return CallStatus.REJECTED if error.status == HTTPStatus.SERVICE_UNAVAILABLE else CallStatus.OTHER


def _ignore(response: object, error: object) -> None:
    """Do nothing: the client of a job that is refused gets the exception."""


def _resolve(future: asyncio.Future[Payload], response: Payload | None, error: BaseException | None) -> None:
    if future.done():
        return  # the task that waited was cancelled
    if error is None:
        future.set_result(response)  # type: ignore[arg-type]  # there is one if there is no error
    else:
        future.set_exception(error)


@contextmanager
def watch_client(receive: Receive, on_disconnect: Callable[[], None]) -> Iterator[None]:
    """Call a function if the client disconnects within this context; on the event loop.

    Args:
        receive: the ASGI channel of a request whose body was read to the end.
        on_disconnect: called once.
    """
    loop = asyncio.get_running_loop()
    tasks: list[asyncio.Task[None]] = []
    timer = loop.call_later(
        WATCH_DELAY_SECONDS, lambda: tasks.append(loop.create_task(_watch(receive, on_disconnect)))
    )
    try:
        yield
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()


async def _watch(receive: Receive, on_disconnect: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    on_disconnect()
