"""Jobs in the order in which they are to be done."""

from collections.abc import Iterator
from typing import Any

from service.scheduling.job import Job


class PriorityQueue:
    """Jobs by priority, 1 first, and by arrival within one; any of them can leave at any time."""

    def __init__(self) -> None:
        self._classes: dict[int, dict[Job[Any], None]] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Job[Any]]:
        return (job for priority in sorted(self._classes) for job in self._classes[priority])

    def push(self, job: Job[Any]) -> None:
        """Add a job."""
        jobs = self._classes.setdefault(job.priority, {})
        is_late = bool(jobs) and next(reversed(jobs)).number > job.number
        jobs[job] = None
        self._length += 1
        if is_late:
            self._classes[job.priority] = dict.fromkeys(sorted(jobs, key=lambda one: one.number))

    def pop(self) -> Job[Any]:
        """Take the first job out."""
        job = next(iter(self._classes[min(self._classes)]))
        self.discard(job)
        return job

    def discard(self, job: Job[Any]) -> bool:
        """Take a job out; tells whether it was in."""
        jobs = self._classes.get(job.priority)
        if jobs is None or job not in jobs:
            return False
        del jobs[job]
        self._length -= 1
        if not jobs:
            del self._classes[job.priority]
        return True
