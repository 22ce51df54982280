"""One request to run a model, of whichever surface, and the record of what became of it.

A route turns its request into a `Call`; the dispatcher queues it, has a worker decode, run and encode it, and tells
the observers (statistics, metrics, recent runs, spans) by one `CallRecord`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar, runtime_checkable

from engine import RunTrace
from engine.run import RunResult
from service.codec import Decoded
from service.repository.loaded_model import LoadedModel

Payload = TypeVar("Payload")


class SurfaceName(Enum):
    """Which of the server's interfaces a request came by."""

    INFER = "infer"
    V2 = "v2"


class Ending(Enum):
    """What became of a call; the values but the first are Triton's reasons of failure."""

    SUCCESS = "SUCCESS"
    REJECTED = "REJECTED"
    """There was no room, or its deadline passed while it waited."""
    CANCELED = "CANCELED"
    """Its client left, or its deadline passed while it ran."""
    BACKEND = "BACKEND"
    """The model could not run on it."""
    OTHER = "OTHER"
    """It could not be read or decoded, or its answer not be encoded."""


@dataclass(slots=True)
class Stamps:
    """When a call came how far, in nanoseconds of `time.perf_counter_ns`; 0 where it never came so far.

    Attributes:
        received: its body was complete.
        queued: it was put in the queue.
        decode_start: a worker took it.
        decode_end: its inputs were arrays.
        forward_start: its run began; the time between is spent waiting for a batch.
        forward_end: its run was over.
        encode_end: its answer was bytes.
    """

    received: int = 0
    queued: int = 0
    decode_start: int = 0
    decode_end: int = 0
    forward_start: int = 0
    forward_end: int = 0
    encode_end: int = 0

    @property
    def queue_ns(self) -> int:
        """Nanoseconds of waiting, for a worker and for a batch together; 0 until it ran."""
        if not self.forward_start:
            return 0
        return self.decode_start - self.queued + self.forward_start - self.decode_end


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a model's run gave for one call.

    Attributes:
        result: its outputs, and trace and captured operands where they were asked for. Of a batch, its own rows.
        stamps: its stamps so far, up to `forward_end`.
        batch_size: items (rows) of the run that it was part of; its own number where it ran alone.
        is_observed: whether the run kept values or took statistics besides: its times are not those of runs that serve.
    """

    result: RunResult
    stamps: Stamps
    batch_size: int
    is_observed: bool = False


@dataclass(frozen=True, slots=True)
class Call(Generic[Payload]):
    """One request to run a model.

    Attributes:
        model: the model.
        surface: the interface that it came by.
        request_id: its id.
        decode: bytes -> inputs and options; called once, by a worker. Raises ServiceError.
        encode: outcome -> what the route answers with; called once, by a worker. Raises ServiceError.
        received_ns: `perf_counter_ns` of the moment when its body was complete.
        timeout: seconds until it is given up, from now; None for the model's or the server's setting.
        priority: 1 is served first; 0 stands for the model's default.
    """

    model: LoadedModel
    surface: SurfaceName
    request_id: str
    decode: Callable[[], Decoded]
    encode: Callable[[Outcome], Payload]
    received_ns: int
    timeout: float | None = None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class CallRecord:
    """How a call ended, or a request that never became one, for statistics, metrics, recent runs and spans.

    Attributes:
        model: name of the model.
        version: its version.
        surface: the interface that the request came by.
        request_id: id of the request.
        ending: how it ended.
        stamps: when it reached which stage.
        batch_size: items of the run that it was part of; 0 where it never ran.
        items: items (rows) that it brought itself; 0 where it was not decoded.
        leads_run: whether it is the one call of its run that counts the run: each run has exactly one.
        worker: name of the thread that ran it; empty where none did.
        trace: the trace of its run; None where none was taken.
        error: one sentence for people; None for a success.
        is_observed: whether its run kept values or took statistics besides: its times are not those of runs that serve.
    """

    model: str
    version: str
    surface: SurfaceName
    request_id: str
    ending: Ending
    stamps: Stamps
    batch_size: int = 0
    items: int = 0
    leads_run: bool = False
    worker: str = ""
    trace: RunTrace | None = None
    error: str | None = None
    is_observed: bool = False


@runtime_checkable
class Observer(Protocol):
    """Told of every call when it is over, on the event loop's thread; must be quick and must not raise."""

    def observe(self, record: CallRecord) -> None:
        """Take note of a call."""
