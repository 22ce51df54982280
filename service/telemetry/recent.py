"""The last runs that were traced, for `/traces`."""

from collections import deque
from dataclasses import dataclass

from engine import RunTrace
from service.scheduling.call import SurfaceName
from service.scheduling.call_record import CallRecord, CallStatus
from service.scheduling.timestamps import Timestamps
from service.telemetry.clock import epoch_offset_ns

MAX_LAYERS = 50_000
"""Most layers kept, of all runs together: less than a kilobyte each, however large the models are."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A traced run of one request. Holds on to nothing of the request's or the model's data.

    Attributes:
        request_id: id of the request, as its client gave it; several may share one.
        model: name of the model.
        version: its version.
        surface: the interface that the request came by.
        status: what became of it.
        received_ms: when its body was complete, in milliseconds since the epoch.
        timestamps: how far it came when.
        batch_size: items of the run.
        items: items that the request brought.
        worker: name of the thread that ran it.
        trace: what every layer did.
        error: why it was not answered.
    """

    request_id: str
    model: str
    version: str
    surface: SurfaceName
    status: CallStatus
    received_ms: float
    timestamps: Timestamps
    batch_size: int
    items: int
    worker: str
    trace: RunTrace
    error: str | None

    @property
    def end_ns(self) -> int:
        """Nanoseconds of `perf_counter_ns` at the last that the request came to."""
        return max(self.timestamps.encode_end, self.timestamps.forward_end, self.timestamps.forward_start)

    @property
    def total_ms(self) -> float:
        """Milliseconds from the end of the body until then."""
        return (self.end_ns - self.timestamps.received) / 1e6


class RecentRuns:
    """An observer that keeps the last traced runs.

    Written on the event loop's thread; other threads may read meanwhile.

    Args:
        capacity: how many runs are kept; 0 for none.
        max_layers: how many layers they may have together; the newest run is kept whatever it has.
    """

    def __init__(self, capacity: int, max_layers: int = MAX_LAYERS) -> None:
        self._capacity = capacity
        self._max_layers = max_layers
        self._runs: deque[RecentRun] = deque()
        self._layers = 0

    def observe(self, record: CallRecord) -> None:
        """Keep the run, if it was traced."""
        if record.trace is None or not self._capacity:
            return
        self._runs.append(_run_of(record, record.trace))
        self._layers += len(record.trace.layers)
        while len(self._runs) > self._capacity or (self._layers > self._max_layers and len(self._runs) > 1):
            self._layers -= len(self._runs.popleft().trace.layers)

    def newest_first(self) -> list[RecentRun]:
        """Return all runs that are kept."""
        return list(self._runs)[::-1]

    def find(self, request_id: str) -> RecentRun | None:
        """Return the newest run of a request, None where none is kept."""
        return next((run for run in self.newest_first() if run.request_id == request_id), None)


def _run_of(record: CallRecord, trace: RunTrace) -> RecentRun:
    return RecentRun(
        request_id=record.request_id,
        model=record.model,
        version=record.version,
        surface=record.surface,
        status=record.status,
        received_ms=(record.timestamps.received + epoch_offset_ns()) / 1e6,
        timestamps=record.timestamps,
        batch_size=record.batch_size,
        items=record.items,
        worker=record.worker,
        trace=trace,
        error=record.error,
    )
