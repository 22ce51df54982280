"""One request to run a model, whichever surface it came by.

A surface turns its request into a `Call`. The dispatcher queues the call, has a worker decode, run and encode it, and
passes one `CallRecord` to the observers when it has ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from engine import RunResult
from service.codec import Decoded
from service.peer import Peer
from service.repository.loaded_model import LoadedModel
from service.scheduling.timestamps import Timestamps

Payload = TypeVar("Payload")


class SurfaceName(Enum):
    """Which of the server's interfaces a request came by."""

    INFER = "infer"
    V1 = "v1"
    V2 = "v2"
    GRPC = "grpc"


class RunOutcome(NamedTuple):
    """What a run of the model computed for one call.

    Attributes:
        result: the outputs; trace and captured operands where they were asked for. Of a batch, the call's own rows.
        timestamps: when the call reached each stage, up to `forward_end`.
        batch_size: items (rows) of the run; those of the call itself where it ran alone.
        is_observed: whether the run kept operands or computed statistics, which makes it slower than other runs.
    """

    result: RunResult
    timestamps: Timestamps
    batch_size: int
    is_observed: bool = False


@dataclass(frozen=True, slots=True)
class Call(Generic[Payload]):
    """One request to run a model.

    Attributes:
        model: the model.
        surface: the interface that the request came by.
        request_id: id of the request.
        decode: returns inputs and options; called by a worker, again only after a HeavyWorkError. Raises ServiceError.
        encode: makes the answer from the outcome of the run; as `decode`.
        received_ns: `perf_counter_ns` of the moment when the request's body was complete.
        timeout: seconds from its submission until it is given up; None for the setting of the model or the server.
        priority: 1 is served first; 0 stands for the model's default.
        client: who sent it.
        is_brief: whether calls of this very form were answered after brief runs, and few bytes are read as they are.
    """

    model: LoadedModel
    surface: SurfaceName
    request_id: str
    decode: Callable[[], Decoded]
    encode: Callable[[RunOutcome], Payload]
    received_ns: int
    timeout: float | None = None
    priority: int = 0
    client: Peer = ""
    is_brief: bool = False
