"""Statistics of each model's requests and runs, which `/v2/…/stats` and `/metrics` show.

The counters are those of Triton's statistics extension and have the same meaning: times are those of answered
requests, and each request of a batch counts the whole time of its run, while `execution_count` and the batch statistics
count a run once.

Observed runs, whose clients asked for captured operands or statistics, take longer than others. They are counted in
`observed_seconds` and, where they fail, among the failures, but nowhere else.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from time import perf_counter_ns, time_ns

from service.histogram import BATCH_SIZES, LAYER_SECONDS, REQUEST_SECONDS, Histogram
from service.scheduling.record import CallRecord, CallStatus, Timestamps

Identity = tuple[str, str]
"""Name and version of a loaded model."""
MAX_BATCH_SIZES = 256
"""Most batch sizes that a model has statistics of, as clients choose them. Further sizes are in no batch statistics."""


@dataclass(slots=True)
class Duration:
    """How often something was done, and how many nanoseconds it took altogether."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        """Count one more time."""
        self.count += 1
        self.ns += ns


@dataclass(slots=True)
class BatchStatistics:
    """Runs of one batch size. Each run is counted once, with the timestamps of the call that leads it."""

    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)

    def observe(self, timestamps: Timestamps) -> None:
        """Count a run."""
        self.compute_input.add(timestamps.decode_end - timestamps.decode_start)
        self.compute_infer.add(timestamps.forward_end - timestamps.forward_start)
        if timestamps.encode_end:  # 0 if the client of that call left, or its answer could not be encoded
            self.compute_output.add(timestamps.encode_end - timestamps.forward_end)


@dataclass(slots=True)
class ModelStatistics:
    """Statistics of one version of a model. The whole time of a request is from the end of its body to its answer's.

    Attributes:
        name: name of the model.
        version: its version.
        last_inference: when its last run ended, in milliseconds since the epoch; 0 where it never ran.
        inference_count: items (rows) of answered requests.
        execution_count: runs; a batch is one.
        success: whole times of answered requests.
        fail: whole times of other requests.
        queue: times that answered requests waited.
        compute_input: times that decoding them took.
        compute_infer: times of their runs.
        compute_output: times that encoding their answers took.
        cache_hit: always zero, there is no cache.
        cache_miss: always zero.
        batches: batch size -> statistics of its runs.
        failures: reason -> number of requests that were not answered.
        request_seconds: whole times of answered requests.
        queue_seconds: times that they waited.
        compute_seconds: times of their runs.
        batch_sizes: items of each run.
        layer_seconds: operator type -> times of its layers in traced runs.
        observed_seconds: whole times of answered requests whose run was observed.
    """

    name: str
    version: str
    last_inference: int = 0
    inference_count: int = 0
    execution_count: int = 0
    success: Duration = field(default_factory=Duration)
    fail: Duration = field(default_factory=Duration)
    queue: Duration = field(default_factory=Duration)
    compute_input: Duration = field(default_factory=Duration)
    compute_infer: Duration = field(default_factory=Duration)
    compute_output: Duration = field(default_factory=Duration)
    cache_hit: Duration = field(default_factory=Duration)
    cache_miss: Duration = field(default_factory=Duration)
    batches: dict[int, BatchStatistics] = field(default_factory=dict)
    failures: dict[CallStatus, int] = field(
        default_factory=lambda: {status: 0 for status in CallStatus if status is not CallStatus.SUCCESS}
    )
    request_seconds: Histogram = field(default_factory=lambda: Histogram(REQUEST_SECONDS))
    queue_seconds: Histogram = field(default_factory=lambda: Histogram(REQUEST_SECONDS))
    compute_seconds: Histogram = field(default_factory=lambda: Histogram(REQUEST_SECONDS))
    batch_sizes: Histogram = field(default_factory=lambda: Histogram(BATCH_SIZES))
    layer_seconds: dict[str, Histogram] = field(default_factory=dict)
    observed_seconds: Histogram = field(default_factory=lambda: Histogram(REQUEST_SECONDS))

    def observe(self, record: CallRecord, now_ns: int) -> None:
        """Count a call that ended at `now_ns`, a reading of `perf_counter_ns`."""
        if record.status is CallStatus.SUCCESS and record.is_observed:
            self.observed_seconds.observe((record.timestamps.encode_end - record.timestamps.received) / 1e9)
        elif record.status is CallStatus.SUCCESS:
            self._count_success(record)
        else:
            self.fail.add(max(0, now_ns - record.timestamps.received))
            self.failures[record.status] += 1
        if record.leads_run and record.timestamps.forward_end and not record.is_observed:
            self._count_run(record)

    def _count_success(self, record: CallRecord) -> None:
        timestamps = record.timestamps
        request_ns = timestamps.encode_end - timestamps.received
        queue_ns = timestamps.queue_ns
        infer_ns = timestamps.forward_end - timestamps.forward_start
        self.inference_count += record.items or 1
        for duration, ns in (  # each request comes here: a loop takes less than a call for each
            (self.success, request_ns),
            (self.queue, queue_ns),
            (self.compute_input, timestamps.decode_end - timestamps.decode_start),
            (self.compute_infer, infer_ns),
            (self.compute_output, timestamps.encode_end - timestamps.forward_end),
        ):
            duration.count += 1
            duration.ns += ns
        self.request_seconds.observe(request_ns / 1e9)
        self.queue_seconds.observe(queue_ns / 1e9)
        self.compute_seconds.observe(infer_ns / 1e9)

    def _count_run(self, record: CallRecord) -> None:
        size = max(1, record.batch_size)
        self.last_inference = time_ns() // 1_000_000
        self.execution_count += 1
        self.batch_sizes.observe(size)
        if size not in self.batches and len(self.batches) < MAX_BATCH_SIZES:
            self.batches[size] = BatchStatistics()
        if size in self.batches:
            self.batches[size].observe(record.timestamps)
        if record.trace is not None:
            for layer in record.trace.layers:
                if layer.type not in self.layer_seconds:
                    self.layer_seconds[layer.type] = Histogram(LAYER_SECONDS)
                self.layer_seconds[layer.type].observe(layer.duration_us / 1e6)


class InferenceStatistics:
    """An observer that keeps the statistics of every model.

    Written on the event loop's thread; other threads may read meanwhile.

    Args:
        clock: returns nanoseconds of `perf_counter_ns`.
    """

    def __init__(self, clock: Callable[[], int] = perf_counter_ns) -> None:
        self._models: dict[Identity, ModelStatistics] = {}
        self._clock = clock

    def observe(self, record: CallRecord) -> None:
        """Take note of a call."""
        identity = (record.model, record.version)
        statistics = self._models.get(identity)
        if statistics is None:
            statistics = self._models[identity] = ModelStatistics(*identity)
        statistics.observe(record, self._clock())

    def of(self, name: str, version: str) -> ModelStatistics:
        """Return the statistics of a loaded model; all zeros before its first request."""
        return self._models.get((name, version)) or ModelStatistics(name, version)

    def keep(self, loaded: Collection[Identity]) -> None:
        """Drop the statistics of models that are no longer loaded. Those of a model that was reloaded go on."""
        for identity in list(self._models):
            if identity not in loaded:
                self._models.pop(identity, None)

    def __len__(self) -> int:
        return len(self._models)
