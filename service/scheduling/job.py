"""A job: one request to run a model, from admission to response, and what is known of it when it has ended."""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from enum import Enum
from time import monotonic, perf_counter_ns
from typing import Any, Generic, Protocol, TypeVar, cast

from engine import OVERDUE, Array, RunResult, RunTrace, TraceLevel
from service.codec import Decoded
from service.context import Peer
from service.repository.loaded_model import LoadedModel
from service.repository.rows import Signature, count_rows

Payload = TypeVar("Payload")


class ProtocolName(Enum):
    """The protocol that a request came by."""

    INFER = "infer"
    V1 = "v1"
    V2 = "v2"
    GRPC = "grpc"


class CallStatus(Enum):
    """How a job ended; the values other than `SUCCESS` are Triton's reasons of failure."""

    SUCCESS = "SUCCESS"
    REJECTED = "REJECTED"
    """The queue was full, or the deadline passed in the queue."""
    CANCELED = "CANCELED"
    """The client left, or the deadline passed during the run."""
    BACKEND = "BACKEND"
    """The model failed on the inputs."""
    OTHER = "OTHER"
    """The request could not be decoded, or the response could not be encoded."""


@dataclass(slots=True)
class Timestamps:
    """When a job reached each stage, in nanoseconds of `time.perf_counter_ns`; 0 for a stage that it never reached.

    Attributes:
        received: its body was complete.
        queued: it was queued.
        decode_start: a worker took it.
        decode_end: its inputs were decoded.
        forward_start: its run began. Since `decode_end` it waited for its batch.
        forward_end: its run ended.
        encode_end: its response was encoded.
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
        """Nanoseconds that it waited, for a worker and for its batch together; 0 until it runs."""
        if not self.forward_start:
            return 0
        return self.decode_start - self.queued + self.forward_start - self.decode_end


@dataclass(slots=True, eq=False)
class Job(Generic[Payload]):
    """One request to run a model, from admission to response.

    The event loop queues and ends it; the one worker that has taken it decodes, runs and encodes it. `cancel` may be
    called on any thread. Deadlines are on the clock of `time.monotonic`.

    Attributes:
        model: the model.
        protocol: the protocol that the request came by.
        request_id: id of the request.
        decode: returns inputs and options; called by a worker, and by a thread with a decoder after a
            NeedsDecoderError. Raises ServiceError.
        encode: makes the response from what the run computed; as `decode`.
        timestamps: when it reached each stage; its creator sets when its body was complete.
        timeout: seconds from its submission to its deadline; None for that of the model or the server.
        priority: 1 is served first; 0 for the model's default.
        client: who sent it.
        is_step: whether it is a step of a pipeline, whose own job has the trace.

        is_over: whether it has ended.
        status: how it has ended; unset until then.
        message: what went wrong; None for a success.
        queued: when it was queued.
        deadline: when it times out.
        timer: cancels it at its deadline.
        context: that of the request, for what runs on its behalf.
        future: gets its response or its error; None before it is queued, and once it has ended.
        cancel_reason: why it was cancelled; None while it is wanted.
        on_cancel: stops its run; None while none is in progress.

        decoded: its inputs and options, from the end of decoding until its response is encoded.
        rows: its number of rows; 0 until it is decoded.
        signature: equal for jobs that can share a run; None if it runs alone.
        is_observed: whether its run keeps operands or computes statistics.
        trace_level: the trace that the client requests.
        worker: name of the thread that runs it; empty until its run begins.
        batch_size: rows of its run; 0 until that begins.
        trace: trace of its run, if any.
        leads_run: whether it is the one job of its run that counts the run.
        needs_decoder: whether a thread with a decoder goes on with it.
        decoding: has it go on there, once that is asked.
        result: what its run computed, if only encoding is left to that thread; of a pipeline, what its steps computed.
        ending: how its worker ended it; None until then.
        response: what `encode` returned.
        error: why there is no response.
    """

    model: LoadedModel
    protocol: ProtocolName
    request_id: str
    decode: Callable[[], Decoded]
    encode: Callable[[RunResult], Payload]
    timestamps: Timestamps
    timeout: float | None = None
    priority: int = 0
    client: Peer = ""
    is_step: bool = False

    is_over: bool = field(init=False, default=False)
    status: CallStatus = field(init=False)
    message: str | None = field(init=False, default=None)
    queued: float = field(init=False, default=0.0)
    deadline: float = field(init=False, default=0.0)
    timer: asyncio.TimerHandle | None = field(init=False, default=None)
    context: Context = field(init=False, default_factory=Context)
    future: asyncio.Future[Payload] | None = field(init=False, default=None)
    cancel_reason: str | None = field(init=False, default=None)
    on_cancel: Callable[[str], None] | None = field(init=False, default=None)

    decoded: Decoded | None = field(init=False, default=None)
    rows: int = field(init=False, default=0)
    signature: Signature | None = field(init=False, default=None)
    is_observed: bool = field(init=False, default=False)
    trace_level: TraceLevel = field(init=False, default=TraceLevel.OFF)
    worker: str = field(init=False, default="")
    batch_size: int = field(init=False, default=0)
    trace: RunTrace | None = field(init=False, default=None)
    leads_run: bool = field(init=False, default=False)
    needs_decoder: bool = field(init=False, default=False)
    decoding: asyncio.Task[None] | None = field(init=False, default=None)
    result: RunResult | None = field(init=False, default=None)
    ending: CallStatus | None = field(init=False, default=None)
    response: Payload | None = field(init=False, default=None)
    error: BaseException | None = field(init=False, default=None)

    @property
    def inputs(self) -> dict[str, Array]:
        """The arrays to run the model on, while it is decoded."""
        return cast(Decoded, self.decoded).inputs

    def admit(self, timeout: float, priority: int) -> None:
        """Start its time; on the event loop, in the context of the request.

        Args:
            timeout: that of the model, which it may shorten; a step has what is left of its pipeline's.
            priority: that of the model, which it may replace.
        """
        if self.timeout is None:
            self.timeout = timeout
        elif not self.is_step:
            self.timeout = min(self.timeout, timeout)
        self.priority = self.priority or priority
        self.context = copy_context()
        self.queued = monotonic()
        self.deadline = self.queued + self.timeout
        self.timestamps.queued = perf_counter_ns()

    def take_decoded(self, decoded: Decoded) -> None:
        """Take the inputs and options that `decode` returned."""
        self.decoded = decoded
        self.rows = count_rows(decoded.inputs)
        self.trace_level = decoded.options.trace or TraceLevel.OFF
        self.is_observed = decoded.options.is_observed

    def stop_reason(self) -> str | None:
        """Return why it is to stop; None while it is to go on."""
        reason = self.cancel_reason
        return OVERDUE if reason is None and monotonic() >= self.deadline else reason

    def cancel(self, reason: str) -> None:
        """Have workers drop it; a run in progress stops before its next layer. `Scheduler.end` is a call of its own."""
        self.cancel_reason = self.cancel_reason or reason
        on_cancel = self.on_cancel
        if on_cancel is not None:
            on_cancel(reason)

    def stop_with(self, on_cancel: Callable[[str], None]) -> None:
        """Have a function called that stops its run when it is cancelled; perhaps more than once."""
        self.on_cancel = on_cancel
        if self.cancel_reason is not None:
            on_cancel(self.cancel_reason)

    def end(self, status: CallStatus, error: BaseException | None = None) -> None:
        """Note how it has ended."""
        self.is_over, self.status = True, status
        if self.is_step:
            self.trace = None  # the pipeline's has the layers of all steps
        self.message = None if error is None else str(error) or type(error).__name__


class CallObserver(Protocol):
    """Receives each job that has ended."""

    def observe(self, job: Job[Any]) -> None:
        """Process a job, without keeping it. Called on the event loop; must be quick and must not raise."""
