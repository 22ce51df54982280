"""What a long run has come to, as a line of JSON now and then: who looks in later sees what grew, and since when."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TextIO

from tests.soak.usage import Usage, usage_of


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a run has come to.

    Attributes:
        seconds: since the run began.
        requests: responses so far.
        statuses: of these responses: status -> how many.
        faults: what was wrong so far.
        usage: what the server uses.
    """

    seconds: float
    requests: int
    statuses: Mapping[str, int]
    faults: int
    usage: Usage

    def line(self) -> str:
        """Return it as one line of JSON."""
        fields = {"seconds": round(self.seconds, 1), "requests": self.requests, "faults": self.faults}
        used = {"threads": self.usage.threads, "files": self.usage.files, "rss": self.usage.memory}
        return json.dumps({**fields, **used, "statuses": dict(sorted(self.statuses.items()))})


class CheckpointLog:
    """Writes a checkpoint each time that enough seconds have passed.

    Args:
        target: where to.
        every: seconds from one to the next; 0 writes each one that is offered.

    Attributes:
        written: those that were written.
    """

    def __init__(self, target: TextIO, every: float) -> None:
        self._target = target
        self._every = every
        self._began = self._last = monotonic()
        self.written: list[Checkpoint] = []

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next."""
        return monotonic() - self._last >= self._every

    def write(self, process_id: int, statuses: Mapping[str, int], faults: int) -> None:
        """Write one.

        Args:
            process_id: of the server.
            statuses: of all responses so far: status -> how many.
            faults: what was wrong so far.
        """
        self._last = monotonic()
        usage = usage_of(process_id)
        known = dict(statuses)
        checkpoint = Checkpoint(self._last - self._began, sum(known.values()), known, faults, usage)
        self.written.append(checkpoint)
        print(checkpoint.line(), file=self._target, flush=True)


def growth_of(checkpoints: list[Checkpoint]) -> int:
    """Return by how many bytes the server's memory has grown from a quarter of a run to its end; 0 for short runs.

    The median of the last quarter is compared with that of the second: one sample may be a moment of much work.
    """
    quarter = len(checkpoints) // 4
    if not quarter:
        return 0
    memories = [checkpoint.usage.memory for checkpoint in checkpoints]
    return _median(memories[-quarter:]) - _median(memories[quarter : 2 * quarter])


def _median(values: list[int]) -> int:
    return sorted(values)[len(values) // 2]
