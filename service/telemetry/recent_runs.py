"""The last runs that were traced, for `/traces`."""

from collections import deque
from dataclasses import dataclass, replace
from time import perf_counter_ns, time_ns
from typing import Any

from engine import RunTrace
from service.context import Peer
from service.scheduling.job import CallStatus, Job, ProtocolName, Timestamps

RECENT_TRACES = 100
"""Traced runs that are kept for `/traces`."""
MAX_LAYERS = 50_000
"""Maximum layers that are kept, of all runs together: each takes less than a kilobyte, however large the model is."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A call whose run was traced.

    Attributes:
        model: name of the model.
        version: its version.
        protocol: the protocol that the request came by.
        request_id: id of the request.
        client: who sent it.
        status: how it ended.
        error: what went wrong; None for a success.
        timestamps: when it reached each stage.
        batch_size: rows of its run.
        items: its own rows.
        worker: name of the thread that ran it.
        trace: what each layer did.
        received_ms: when the request's body was complete, in milliseconds since the epoch.
    """

    model: str
    version: str
    protocol: ProtocolName
    request_id: str
    client: Peer
    status: CallStatus
    error: str | None
    timestamps: Timestamps
    batch_size: int
    items: int
    worker: str
    trace: RunTrace
    received_ms: float

    @property
    def is_shared(self) -> bool:
        """Whether the run served other calls, too. Then several workers may have decoded them."""
        return self.batch_size > self.items

    @property
    def end_ns(self) -> int:
        """When the call completed its last stage, in nanoseconds of `perf_counter_ns`."""
        timestamps = self.timestamps
        return max(timestamps.encode_end, timestamps.forward_end, timestamps.forward_start)

    @property
    def total_ms(self) -> float:
        """Milliseconds from the end of the request's body until then."""
        return (self.end_ns - self.timestamps.received) / 1e6


class RecentRuns:
    """An observer that keeps the last traced runs.

    Written on the event loop's thread; other threads may read meanwhile.

    Args:
        capacity: how many runs are kept; 0 for none.
        max_layers: how many layers they may have together; the newest run is kept however many it has.
    """

    def __init__(self, capacity: int = RECENT_TRACES, max_layers: int = MAX_LAYERS) -> None:
        self._capacity = capacity
        self._max_layers = max_layers
        self._runs: deque[RecentRun] = deque()
        self._layers = 0

    def observe(self, job: Job[Any]) -> None:
        """Keep what is shown of a job that has ended, if its run was traced."""
        if job.trace is None:
            return
        run = RecentRun(
            model=job.model.name,
            version=job.model.version,
            protocol=job.protocol,
            request_id=job.request_id,
            client=job.client,
            status=job.status,
            error=job.message,
            timestamps=replace(job.timestamps),  # a worker may still write to the job's
            batch_size=job.batch_size,
            items=job.rows,
            worker=job.worker,
            trace=job.trace,
            received_ms=(job.timestamps.received + epoch_offset_ns()) / 1e6,
        )
        self._runs.append(run)
        self._layers += len(run.trace.layers)
        while len(self._runs) > self._capacity or (self._layers > self._max_layers and len(self._runs) > 1):
            self._layers -= len(self._runs.popleft().trace.layers)

    def newest_first(self, client: Peer | None = None) -> list[RecentRun]:
        """Return the runs that are kept: those of a client, or all."""
        return [run for run in list(self._runs)[::-1] if client is None or run.client == client]

    def find(self, request_id: str, client: Peer | None = None) -> RecentRun | None:
        """Return the newest run of a request, of a client where one is given; None where none is kept."""
        return next((run for run in self.newest_first(client) if run.request_id == request_id), None)


def epoch_offset_ns() -> int:
    """Return what to add to a reading of `time.perf_counter_ns` to get nanoseconds since the epoch."""
    return time_ns() - perf_counter_ns()
