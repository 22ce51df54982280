"""The stop signal of a run that serves several calls."""

from collections.abc import Sequence
from threading import Lock
from typing import Any

from engine import StopSignal
from service.scheduling.scheduled_call import ScheduledCall


class SharedStopSignal(StopSignal):
    """Stops a run when all of its calls are cancelled, or when the last of their deadlines has passed.

    Args:
        calls: the calls.
    """

    __slots__ = ("_count_lock", "_wanted")

    def __init__(self, calls: Sequence[ScheduledCall[Any]]) -> None:
        super().__init__(max(scheduled.deadline for scheduled in calls))
        self._wanted = len(calls)
        self._count_lock = Lock()
        for scheduled in calls:
            scheduled.cancellation.on_cancel(self._cancel_one)

    def _cancel_one(self, reason: str) -> None:
        with self._count_lock:
            self._wanted -= 1
            is_last = not self._wanted
        if is_last:
            self.stop(reason)
