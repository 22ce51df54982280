"""What is recorded of a call when it has ended, and the observers that get the record."""

from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

from engine import RunTrace
from service.peer import Peer
from service.scheduling.call import SurfaceName
from service.scheduling.timestamps import Timestamps


class CallStatus(Enum):
    """How a call ended; the values other than `SUCCESS` are Triton's reasons of failure."""

    SUCCESS = "SUCCESS"
    REJECTED = "REJECTED"
    """The queue was full, or the deadline passed while the call waited."""
    CANCELED = "CANCELED"
    """The client left, or the deadline passed while the model ran."""
    BACKEND = "BACKEND"
    """The model failed on the inputs."""
    OTHER = "OTHER"
    """The request could not be read or decoded, or the answer could not be encoded."""


class CallRecord(NamedTuple):
    """How a call ended, or a request that never became a call; for statistics, metrics, recent runs and spans.

    Attributes:
        model: name of the model.
        version: its version.
        surface: the interface that the request came by.
        request_id: id of the request.
        status: how it ended.
        timestamps: when it reached each stage.
        batch_size: items (rows) of the run that it was part of; 0 where it never ran.
        items: items that it brought itself; 0 where it was not decoded.
        leads_run: whether the run is counted with this call: of the calls of a run, exactly one leads it.
        worker: name of the thread that ran it; empty where none did.
        trace: the trace of its run; None where none was taken.
        error: one sentence that says what went wrong; None for a success.
        is_observed: whether the run kept operands or computed statistics, which makes it slower than other runs.
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
    """Gets the record of each call when it has ended."""

    def observe(self, record: CallRecord) -> None:
        """Take note of a call. Called on the event loop's thread; must be quick and must not raise."""
