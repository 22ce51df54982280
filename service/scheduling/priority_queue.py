"""Calls in the order in which they are served."""

from collections.abc import Iterator
from typing import Any

from service.scheduling.scheduled_call import ScheduledCall


class PriorityQueue:
    """Calls by priority, 1 first, and by arrival within a priority. Any call can be taken out at any time."""

    def __init__(self) -> None:
        self._classes: dict[int, dict[ScheduledCall[Any], None]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ScheduledCall[Any]]:
        return (scheduled for priority in sorted(self._classes) for scheduled in self._classes[priority])

    def push(self, scheduled: ScheduledCall[Any]) -> None:
        """Add a call."""
        calls = self._classes.setdefault(scheduled.priority, {})
        is_late = bool(calls) and next(reversed(calls)).number > scheduled.number
        calls[scheduled] = None
        self._length += 1
        if is_late:
            in_order = sorted(calls, key=lambda each: each.number)
            self._classes[scheduled.priority] = dict.fromkeys(in_order)

    def pop(self) -> ScheduledCall[Any]:
        """Take the first call out."""
        scheduled = next(iter(self._classes[min(self._classes)]))
        self.discard(scheduled)
        return scheduled

    def discard(self, scheduled: ScheduledCall[Any]) -> bool:
        """Take a call out; returns whether it was in."""
        calls = self._classes.get(scheduled.priority)
        if calls is None or scheduled not in calls:
            return False
        del calls[scheduled]
        self._length -= 1
        if not calls:
            del self._classes[scheduled.priority]
        return True
