"""Takes calls from the routes, returns their answers, and has it recorded how each call ended."""

import asyncio
from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Protocol, TypeVar
from weakref import WeakKeyDictionary

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from service.config.settings import Settings
from service.errors import ServiceError
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling import disconnect_watcher
from service.scheduling.call import Call, SurfaceName
from service.scheduling.call_record import CallObserver, CallRecord, CallStatus
from service.scheduling.delay_queue import DelayQueue
from service.scheduling.disconnect_watcher import DisconnectWatcher
from service.scheduling.fair_share import VirtualClock
from service.scheduling.heavy_queue import HeavyQueue
from service.scheduling.model_queue import ModelQueue
from service.scheduling.pending_call import DoneCallback, PendingCall
from service.scheduling.policy import scheduling_policy
from service.scheduling.run_estimate import RunEstimate
from service.scheduling.scheduler import Scheduler
from service.scheduling.timestamps import Timestamps
from service.scheduling.trace_setting import TraceSetting

Payload = TypeVar("Payload")


class Mirror(Protocol):
    """Sees every call before it is queued."""

    def __call__(
        self, call: Call[Payload], done: DoneCallback[Payload], /
    ) -> tuple[Call[Payload], DoneCallback[Payload]]:
        """Return the call to queue in its place, and what is to be called when that has ended."""


class Dispatcher:
    """Takes calls, has workers run them, and gives the observers a record of how each call ended.

    Methods are called on the event loop; `retire`, `waiting`, `running` and `busy_workers` may be called on any thread.

    Args:
        settings: the server's settings, for what a model's own `model.toml` does not set.
        observers: get the record of each call when it has ended.

    Attributes:
        server_tracing: which runs are sampled, of models that do not set it themselves.
        mirror: sees every call before it is queued; None, unless a model has shadow runs.
    """

    def __init__(self, settings: Settings, observers: Sequence[CallObserver] = ()) -> None:
        self._settings = settings
        self._observers = observers
        self.server_tracing = TraceSetting(settings.trace_rate)
        self.mirror: Mirror | None = None
        self._tracing: dict[str, TraceSetting] = {}
        self._estimates: WeakKeyDictionary[LoadedModel, RunEstimate] = WeakKeyDictionary()
        self._heavy = Scheduler(
            settings.heavy_worker_count, self._make_heavy_queue, name="heavy-worker", limits_blas=False
        )
        self._scheduler = Scheduler(settings.worker_count, self._make_queue, self._heavy)
        self._deadlines: dict[float, DelayQueue] = {}
        self._watch_delay = DelayQueue(disconnect_watcher.DELAY_SECONDS)

    def start(self) -> None:
        """Start the workers."""
        self._scheduler.start()

    def close(self) -> None:
        """Take no more calls, give up those that are there, and return when every worker has ended."""
        self._scheduler.close()

    def refuse_all(self, error: ServiceError) -> None:
        """Give all calls up; each ends with `error`."""
        self._scheduler.refuse_all(error)

    def observe_refusal(
        self,
        model: LoadedModel,
        surface: SurfaceName,
        request_id: str,
        received_ns: int,
        error: ServiceError | ClientDisconnect,
    ) -> None:
        """Give the observers the record of a request that never becomes a call.

        Args:
            model: the model that it names.
            surface: the interface that it came by.
            request_id: its id.
            received_ns: `perf_counter_ns` of the moment when its head had arrived.
            error: why it does not become one.
        """
        record = CallRecord(
            model=model.name,
            version=model.version,
            surface=surface,
            request_id=request_id,
            status=_status_of(error),
            timestamps=Timestamps(received=received_ns),
            error=str(error) or type(error).__name__,
        )
        for observer in self._observers:
            observer.observe(record)

    def check_room(self, model: LoadedModel, client: Peer = "") -> None:
        """Check that a model's queue takes one more call of a client.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        self._scheduler.check_room(model, client)

    def submit(self, call: Call[Payload], done: DoneCallback[Payload]) -> PendingCall[Payload]:
        """Queue a call.

        Args:
            call: the call.
            done: called once, unless this raises: with what the call's `encode` returned, or with what `answer` raises.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        if self.mirror is not None:
            call, done = self.mirror(call, done)
        policy = self._scheduler.policy(call.model)
        deadline = self._deadline(policy.timeout, call.timeout)
        priority = call.priority or policy.priority
        pending = PendingCall(call, deadline, priority, self._scheduler, self._observers, done)
        pending.submit()
        return pending

    async def answer(self, call: Call[Payload], receive: Receive) -> Payload:
        """Submit a call, and return what its `encode` returns.

        Args:
            call: the call.
            receive: the ASGI channel of its request, whose body was read; a client that disconnects is seen there.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`, 504 `timeout`, 422 or 503 where the model fails on its
                inputs, or what its `decode` or `encode` raised.
            ClientDisconnect: the client has left.
        """
        future: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        pending = self.submit(call, partial(_resolve, future))
        watcher = DisconnectWatcher(pending, receive, self._watch_delay)
        watcher.start()
        try:
            return await future
        except asyncio.CancelledError as error:
            pending.give_up("the request was cancelled", error)
            raise
        finally:
            watcher.stop()

    async def run(self, call: Call[Payload]) -> Payload:
        """Submit a call, and return what its `encode` returns; the task that waits is cancelled if the client leaves.

        Args:
            call: the call.

        Raises:
            ServiceError: as `answer`.
        """
        future: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        pending = self.submit(call, partial(_resolve, future))
        del call
        try:
            return await future
        except asyncio.CancelledError as error:
            pending.give_up("the client left", error)
            raise

    def retire(self, model: LoadedModel) -> None:
        """Forget a model as soon as no call of it waits or runs; calls that still come for it are taken."""
        self._scheduler.retire(model)

    def trace_setting(self, model: LoadedModel) -> TraceSetting:
        """Return the setting that samples the runs of a model; all versions of a name share one."""
        return self._tracing.setdefault(model.name, self.server_tracing.for_model())

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Return how many calls wait, for one model or for all."""
        return self._scheduler.waiting(model)

    def running(self, model: LoadedModel | None = None) -> int:
        """Return how many calls workers have taken, given up or not, for one model or for all."""
        return self._scheduler.running(model)

    def busy_workers(self) -> int:
        """Return how many workers have work, those for heavy calls not counted."""
        return self._scheduler.busy_workers()

    def busy_now(self) -> int:
        """Return how many workers of both kinds have work, without waiting for a lock that workers may hold."""
        return self._scheduler.busy_workers() + self._heavy.busy_workers()

    def busy_heavy_workers(self) -> int:
        """Return how many workers for heavy calls have work."""
        return self._heavy.busy_workers()

    def _deadline(self, longest: float, asked: float | None) -> DelayQueue:
        """Return what calls back when a call has to be given up, in seconds from now.

        Args:
            longest: the setting of its model or of the server.
            asked: what its request says; None where that says nothing.
        """
        if asked is not None and asked < longest:
            return DelayQueue(asked, keeps_timer=False)  # clients choose it: not one for others
        deadline = self._deadlines.get(longest)
        if deadline is None:
            deadline = self._deadlines[longest] = DelayQueue(longest)
        return deadline

    def _make_queue(self, model: LoadedModel, clock: VirtualClock) -> ModelQueue:
        policy = scheduling_policy(model.config, self._settings, model.batching)
        return ModelQueue(model, policy, clock, self.trace_setting(model), self._estimate(model))

    def _make_heavy_queue(self, model: LoadedModel, clock: VirtualClock) -> HeavyQueue:
        policy = scheduling_policy(model.config, self._settings, model.batching)
        workers, estimate = self._settings.heavy_worker_count, self._estimate(model)
        return HeavyQueue(model, policy, workers, clock, self.trace_setting(model), estimate)

    def _estimate(self, model: LoadedModel) -> RunEstimate:
        return self._estimates.setdefault(model, RunEstimate(model.batching.max_batch_size))


def _status_of(error: ServiceError | ClientDisconnect) -> CallStatus:
    if isinstance(error, ClientDisconnect):
        return CallStatus.CANCELED
    return CallStatus.REJECTED if error.status == HTTPStatus.SERVICE_UNAVAILABLE else CallStatus.OTHER


def _resolve(future: asyncio.Future[Payload], answer: Payload | None, error: BaseException | None) -> None:
    if future.done():
        return  # the task that waited was cancelled
    if error is None:
        future.set_result(answer)  # type: ignore[arg-type]  # there is one where there is no error
    else:
        future.set_exception(error)
