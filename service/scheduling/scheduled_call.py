"""A call while it passes through queues and workers."""

import asyncio
from contextvars import copy_context
from itertools import count
from time import monotonic, perf_counter_ns
from typing import Final, Generic, Protocol, TypeVar

from engine import OVERDUE
from service.scheduling.call import Call
from service.scheduling.cancellation import Cancellation
from service.scheduling.progress import Progress, Result
from service.scheduling.timestamps import Timestamps

Payload = TypeVar("Payload")

_sequence = count()


class Completion(Protocol[Payload]):
    """Takes the end of a call, on the event loop."""

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""

    def complete(self, result: Result[Payload], leads_run: bool) -> None:
        """End the call by a worker's result, unless it has ended already.

        Args:
            result: the result.
            leads_run: whether this call is the one of its run that counts the run.
        """

    def abort(self, error: BaseException) -> None:
        """End the call with an error, unless it has ended already."""


class ScheduledCall(Generic[Payload]):
    """A call with its place in the queue, and what the scheduler and the workers share about it.

    It never changes itself: workers write to `progress`, any thread may use `cancellation`, and the event loop ends the
    call through `completion`. Made on the event loop, in the context of the call's request. Deadlines are on the clock
    of `time.monotonic`.

    Args:
        call: the call.
        timeout: seconds from now until it is given up.
        priority: 1 is served first.
        completion: takes its end.

    Attributes:
        call: the call.
        timeout: seconds from `arrived` to `deadline`.
        priority: 1 is served first.
        number: place in the order of arrival.
        arrived: when it was scheduled.
        deadline: when it is given up.
        loop: the event loop on which it ends.
        context: the context that it was made in, for what is run on its behalf.
        completion: takes its end.
        cancellation: how it is stopped.
        progress: what workers have done for it so far.
    """

    __slots__ = (
        "arrived",
        "call",
        "cancellation",
        "completion",
        "context",
        "deadline",
        "loop",
        "number",
        "priority",
        "progress",
        "timeout",
    )

    def __init__(
        self, call: Call[Payload], timeout: float, priority: int, completion: Completion[Payload]
    ) -> None:
        self.call: Final = call
        self.timeout: Final = timeout
        self.priority: Final = priority
        self.number: Final = next(_sequence)
        self.arrived: Final = monotonic()
        self.deadline: Final = self.arrived + timeout
        self.loop: Final = asyncio.get_running_loop()
        self.context: Final = copy_context()
        self.completion: Final = completion
        self.cancellation: Final = Cancellation()
        self.progress: Final[Progress[Payload]] = Progress(Timestamps(call.received_ns, perf_counter_ns()))

    def stop_reason(self) -> str | None:
        """Return why the call is to be given up, None while it is to go on."""
        reason = self.cancellation.reason
        return OVERDUE if reason is None and monotonic() >= self.deadline else reason
