"""The record of a request that has ended, for statistics, metrics, recent runs and spans."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from engine import RunTrace
from service.peer import Peer


class SurfaceName(Enum):
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


class CallRecord(NamedTuple):
    """How a job ended, or a request that was refused before.

    Attributes:
        model: name of the model.
        version: its version.
        surface: the protocol that the request came by.
        request_id: id of the request.
        status: how it ended.
        timestamps: when it reached each stage.
        batch_size: rows of its run; 0 if it never ran.
        items: its own rows; 0 if it was not decoded.
        leads_run: whether it is the one job of its run that counts the run.
        worker: name of the thread that ran it; empty if none did.
        trace: trace of its run, if any.
        error: what went wrong; None for a success.
        is_observed: whether the run kept operands or computed statistics, which makes it slower.
        client: who sent the request.
    """

    model: str
    version: str
    surface: SurfaceName
    request_id: str
    status: CallStatus
    timestamps: Timestamps
    batch_size: int = 0
    items: int = 0
    leads_run: bool = False
    worker: str = ""
    trace: RunTrace | None = None
    error: str | None = None
    is_observed: bool = False
    client: Peer = ""


@runtime_checkable
class CallObserver(Protocol):
    """Receives the record of each job that has ended."""

    def observe(self, record: CallRecord) -> None:
        """Process a record. Called on the event loop; must be quick and must not raise."""
