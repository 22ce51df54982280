"""How far workers have come with a call."""

from typing import Generic, NamedTuple, TypeVar

from engine import Array, RunTrace, TraceLevel
from service.codec import Decoded
from service.scheduling.call import RunOutcome
from service.scheduling.call_record import CallStatus
from service.scheduling.rows import Signature
from service.scheduling.timestamps import Timestamps

Payload = TypeVar("Payload")


class Result(NamedTuple, Generic[Payload]):
    """The result of a worker's work on a call.

    Attributes:
        status: how it ended.
        answer: what the call's `encode` returned; None where it failed.
        error: why it failed; None where it did not.
    """

    status: CallStatus
    answer: Payload | None = None
    error: Exception | None = None


class Progress(Generic[Payload]):
    """How far workers have come with a call.

    Written only by the worker that has taken the call. Other threads may read it while it changes.

    Args:
        timestamps: when the call was received and queued.

    Attributes:
        timestamps: when it reached each stage.
        decoded: its inputs and options, from the end of decoding until its answer is encoded.
        items: items (rows) that it brings; 0 until it is decoded.
        signature: what it has in common with calls that it can be run with; None where it is run alone.
        is_observed: whether its run keeps operands or computes statistics; known once it is decoded.
        worker: name of the thread that runs it; empty until its run begins.
        batch_size: items of the run that it is part of; 0 until that begins.
        trace: trace of its run; None where none was taken.
        trace_level: how much of its run the client wants to see; nothing before it is decoded.
        is_heavy: whether a worker has left it to those for heavy calls.
        outcome: what its run computed, where only its encoding was left to them; None otherwise.
        leads_run: whether it counts that run, as all calls of the run were left.
        result: the result; None until the worker is done.
    """

    __slots__ = (
        "batch_size",
        "decoded",
        "is_heavy",
        "is_observed",
        "items",
        "leads_run",
        "outcome",
        "result",
        "signature",
        "timestamps",
        "trace",
        "trace_level",
        "worker",
    )

    def __init__(self, timestamps: Timestamps) -> None:
        self.timestamps = timestamps
        self.decoded: Decoded | None = None
        self.items = 0
        self.signature: Signature | None = None
        self.is_observed = False
        self.worker = ""
        self.batch_size = 0
        self.trace: RunTrace | None = None
        self.trace_level = TraceLevel.OFF
        self.is_heavy = False
        self.outcome: RunOutcome | None = None
        self.leads_run = False
        self.result: Result[Payload] | None = None

    @property
    def inputs(self) -> dict[str, Array]:
        """The arrays to run the model on.

        Raises:
            RuntimeError: the call is not decoded yet, or its answer is encoded already.
        """
        if self.decoded is None:
            raise RuntimeError("the call is not decoded, or its answer is encoded already")
        return self.decoded.inputs
