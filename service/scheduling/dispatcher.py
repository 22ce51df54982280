"""Answers calls: the one way from a route to a model and back."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from time import perf_counter_ns
from typing import TypeVar, cast

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from service.config.settings import Settings
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Call, CallRecord, Ending, Observer, Stamps, SurfaceName
from service.scheduling.disconnect_watcher import DisconnectWatcher
from service.scheduling.fair_share import VirtualClock
from service.scheduling.model_queue import ModelQueue
from service.scheduling.pending import Done, PendingCall
from service.scheduling.policy import policy_of
from service.scheduling.scheduler import Scheduler
from service.scheduling.trace_setting import TraceSetting

Payload = TypeVar("Payload")


class Dispatcher:
    """Takes calls, has workers see to them, and tells the observers what became of them.

    All methods are called on the event loop, `retire` and the counts from any thread.

    Args:
        settings: the server's; what a model's own `model.toml` does not say.
        observers: told of every call when it is over; may be added to until the first call.

    Attributes:
        server_tracing: which runs are traced unasked, of models that do not set it themselves.
    """

    def __init__(self, settings: Settings, observers: Sequence[Observer] = ()) -> None:
        self._settings = settings
        self._observers = observers
        self.server_tracing = TraceSetting(settings.trace_rate)
        self._tracing: dict[str, TraceSetting] = {}
        self._scheduler = Scheduler(settings.worker_count, self._make_queue)

    def start(self) -> None:
        """Start the workers."""
        self._scheduler.start()

    def close(self) -> None:
        """Take nothing more, give up what is there, and return when every worker has ended."""
        self._scheduler.close()

    def refuse_all(self, error: ServiceError) -> None:
        """Give all calls up, and raise `error` where their answers are awaited."""
        self._scheduler.refuse_all(error)

    @contextmanager
    def admission(self, model: LoadedModel, surface: SurfaceName, request_id: str) -> Iterator[None]:
        """Wrap what turns a request into a call: the observers are told of those that never become one.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`: what `answer` would refuse, before the body is read.
        """
        received = perf_counter_ns()
        try:
            self.check_room(model)
            yield
        except (ServiceError, ClientDisconnect) as error:
            self._observe_refusal(model, surface, request_id, received, error)
            raise

    def _observe_refusal(
        self,
        model: LoadedModel,
        surface: SurfaceName,
        request_id: str,
        received_ns: int,
        error: ServiceError | ClientDisconnect,
    ) -> None:
        """Tell the observers of a request that never becomes a call, which came at `received_ns`."""
        record = CallRecord(
            model=model.name,
            version=model.version,
            surface=surface,
            request_id=request_id,
            ending=_ending_of(error),
            stamps=Stamps(received=received_ns),
            error=str(error) or type(error).__name__,
        )
        for observer in self._observers:
            observer.observe(record)

    def check_room(self, model: LoadedModel) -> None:
        """Tell whether a model's queue takes one more call.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        self._scheduler.check_room(model)

    def submit(self, call: Call[Payload], done: Done[Payload]) -> PendingCall[Payload]:
        """Queue a call.

        Args:
            call: the call.
            done: called once, unless this raises: with what the call's `encode` returned, or with what `answer` raises.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`.
        """
        policy = self._scheduler.policy(call.model)
        timeout = policy.timeout if call.timeout is None else min(call.timeout, policy.timeout)
        priority = call.priority or policy.priority
        pending = PendingCall(call, timeout, priority, self._scheduler, self._observers, done)
        pending.submit()
        return pending

    async def answer(self, call: Call[Payload], receive: Receive) -> Payload:
        """Return what a call's `encode` makes of its run.

        Args:
            call: the call.
            receive: the request's ASGI channel, its body read to the end; tells when the client leaves.

        Raises:
            ServiceError: 503 `queue_full` or `shutting_down`, 504 `timeout`, 422 or 503 where the model does not run
                on it, or what `decode` or `encode` raised.
            ClientDisconnect: the client has left.
        """
        future: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        pending = self.submit(call, partial(_resolve, future))
        watcher = DisconnectWatcher(pending, receive)
        watcher.start()
        try:
            return await future
        except asyncio.CancelledError as error:
            pending.give_up("the request was cancelled", error)
            raise
        finally:
            watcher.stop()

    def retire(self, model: LoadedModel) -> None:
        """Forget a model as soon as nothing of it waits or runs; calls that still come for it are taken."""
        self._scheduler.retire(model)

    def trace_setting(self, model: LoadedModel) -> TraceSetting:
        """Return what decides which runs of a model are traced unasked; the same for all versions of its name."""
        return self._tracing.setdefault(model.name, self.server_tracing.for_model())

    def waiting(self, model: LoadedModel | None = None) -> int:
        """Count the calls that wait, of one model or of all."""
        return self._scheduler.waiting(model)

    def running(self, model: LoadedModel | None = None) -> int:
        """Count the calls that workers are on, given up or not, of one model or of all."""
        return self._scheduler.running(model)

    def busy_workers(self) -> int:
        """Count the workers that are on any call."""
        return self._scheduler.busy_workers()

    def _make_queue(self, model: LoadedModel, clock: VirtualClock) -> ModelQueue:
        return ModelQueue(
            model, policy_of(model.config, self._settings, model.batching), clock, self.trace_setting(model)
        )


def _ending_of(error: ServiceError | ClientDisconnect) -> Ending:
    if isinstance(error, ClientDisconnect):
        return Ending.CANCELED
    return Ending.REJECTED if error.status == HTTPStatus.SERVICE_UNAVAILABLE else Ending.OTHER


def _resolve(future: asyncio.Future[Payload], answer: Payload | None, error: BaseException | None) -> None:
    if future.done():
        return  # whoever waited was cancelled
    if error is None:
        future.set_result(cast("Payload", answer))
    else:
        future.set_exception(error)
