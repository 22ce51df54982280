"""Tells which calls the event loop runs itself: brief ones that come one at a time."""

from typing import Any

from service.scheduling.model_queue import ModelQueue
from service.scheduling.scheduled_call import ScheduledCall

_SETTLED = 16
"""Calls in a row that came alone, after which the next one is expected to do so as well."""


class LoneCalls:
    """Remembers whether calls come one at a time: to hand one to a worker takes longer than to run a small model.

    Where calls overlap, workers run them: the loop would read no other request meanwhile. Not thread-safe.
    """

    __slots__ = ("_in_a_row", "_queue")

    def __init__(self) -> None:
        self._in_a_row = 0
        self._queue: ModelQueue | None = None

    def arrive(self, queue: ModelQueue, scheduled: ScheduledCall[Any], is_alone: bool) -> None:
        """Note that a call was queued.

        Args:
            queue: its queue.
            scheduled: the call.
            is_alone: whether no other call waits for a worker or has one.
        """
        self._queue = None
        if not is_alone:
            self._in_a_row = 0
            return
        self._in_a_row += 1
        if self._in_a_row > _SETTLED and scheduled.call.is_brief and queue.is_brief:
            self._queue = queue

    def take(self) -> ModelQueue | None:
        """Return the queue whose one call the loop is to run, once; None where workers are to see to it."""
        queue, self._queue = self._queue, None
        return queue
