"""Statistics of each model's requests and runs, which `/v2/…/stats`, `/stats` and `/metrics` show.

Their meaning is that of Triton's statistics extension: times are those of successful requests, and each request of a
batch counts the whole time of its run, while batch sizes and the statistics of batches count a run once.

Observed runs, whose clients asked for captured operands or statistics, take longer than others. They are counted in
`kuiper_observed_request_seconds` and, where they fail, among the failures, but nowhere else.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from time import perf_counter_ns, time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary
from prometheus_client.registry import Collector

from service.histogram import BATCH_SIZES, LAYER_SECONDS, REQUEST_SECONDS
from service.scheduling.job import CallStatus, Job
from service.telemetry.model_statistics import RUN_STAGES, ModelStatistics, read_statistics

Identity = tuple[str, str]
"""Name and version of a model."""
MODEL_LABELS = ("model", "version")
"""Labels of every series that belongs to a version of a model."""
MAX_BATCH_SIZES = 256
"""Maximum batch sizes that a model has statistics of, as clients choose them; others are in no batch statistics."""


class InferenceStatistics:
    """An observer that counts the requests and runs of every model, in metrics of `prometheus_client`.

    Those whose names begin with `statistics_` are for `/stats` and Triton's statistics only. Written on the event
    loop's thread; other threads may read meanwhile.

    Args:
        registry: where its metrics are registered.
        source: what it reads: the registry, or the files of all processes, of which nothing can be removed.
        clock: returns nanoseconds of `perf_counter_ns`.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        source: Collector | None = None,
        clock: Callable[[], int] = perf_counter_ns,
    ) -> None:
        self._metrics = _Metrics(registry)
        self._models: dict[Identity, _Model] = {}
        self._source: Collector = registry if source is None else source
        self._is_alone = self._source is registry
        self._clock = clock

    def observe(self, job: Job[Any]) -> None:
        """Count a call."""
        identity = job.model.name, job.model.version
        model = self._models.get(identity) or self._begin(identity)
        model.observe(job, self._clock())

    def read(self, models: Iterable[Identity]) -> list[ModelStatistics]:
        """Return what was counted of models, in all processes together; all zeros before their first request."""
        found: dict[Identity, dict[str, dict[tuple[str, ...], float]]] = {identity: {} for identity in models}
        for identity in found.keys() - self._models.keys():
            self._begin(identity)
        for family in self._source.collect():
            for sample in family.samples:
                labels = sample.labels
                model = found.get((labels.get("model", ""), labels.get("version", "")))
                if model is not None:
                    rest = tuple(value for name, value in labels.items() if name not in MODEL_LABELS)
                    model.setdefault(sample.name, {})[rest] = sample.value
        return [read_statistics(*identity, samples) for identity, samples in found.items()]

    def keep(self, loaded: Collection[Identity]) -> None:
        """Begin the series of loaded models, and end those of all others. Those of a model that was reloaded go on."""
        for identity in set(loaded).difference(self._models):
            self._begin(identity)
        for identity in set(self._models).difference(loaded):
            self._models.pop(identity, None)
            if self._is_alone:
                self._metrics.remove(identity)

    def _begin(self, identity: Identity) -> "_Model":
        return self._models.setdefault(identity, _Model(self._metrics, identity))


_HISTOGRAMS = (
    (
        "kuiper_request_seconds",
        "seconds from the end of a successful request's body to the end of its response",
        REQUEST_SECONDS,
    ),
    (
        "kuiper_queue_seconds",
        "seconds that successful requests waited, in the queue and for a batch",
        REQUEST_SECONDS,
    ),
    ("kuiper_compute_seconds", "seconds that the runs of successful requests took", REQUEST_SECONDS),
    (
        "kuiper_observed_request_seconds",
        "the same as kuiper_request_seconds, for requests that asked for captured operands or statistics",
        REQUEST_SECONDS,
    ),
    ("kuiper_batch_size", "number of items (rows) of each run", BATCH_SIZES),
)
_COUNTERS = (
    ("statistics_items", "items (rows) of successful requests"),
    ("statistics_input_seconds", "decoding the inputs of successful requests"),
    ("statistics_output_seconds", "encoding the responses of successful requests"),
)


class _Metrics:
    """The metrics of all models."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.histograms = [
            Histogram(name, text, MODEL_LABELS, buckets=bounds, registry=registry)
            for name, text, bounds in _HISTOGRAMS
        ]
        self.counters = [Counter(name, text, MODEL_LABELS, registry=registry) for name, text in _COUNTERS]
        self.layer = Histogram(
            "kuiper_layer_seconds",
            "seconds that the layers of traced runs took, by type of operator",
            (*MODEL_LABELS, "type"),
            buckets=LAYER_SECONDS,
            registry=registry,
        )
        self.failures = Counter(
            "statistics_failures", "failed requests", (*MODEL_LABELS, "reason"), registry=registry
        )
        self.failed = Summary(
            "statistics_failed_seconds", "times of requests that failed", MODEL_LABELS, registry=registry
        )
        stages = (*MODEL_LABELS, "size", "stage")
        self.stage = Summary(
            "statistics_run_seconds", "stages of runs, by batch size", stages, registry=registry
        )
        self.last_run = Gauge(
            "statistics_last_run",
            "end of the last run, in seconds since 1970",
            MODEL_LABELS,
            registry=registry,
            multiprocess_mode="max",
        )

    def remove(self, identity: Identity) -> None:
        """End the series of a version of a model."""
        labels = dict(zip(MODEL_LABELS, identity, strict=True))
        single = (self.layer, self.failures, self.failed, self.stage, self.last_run)
        for metric in (*self.histograms, *self.counters, *single):
            metric.remove_by_labels(labels)


class _Model:
    """The series of one version of a model: looking them up takes longer than counting."""

    def __init__(self, metrics: _Metrics, identity: Identity) -> None:
        self._metrics = metrics
        self._identity = identity
        self._request, self._queue, self._compute, self._observed, self._batch_size = (
            histogram.labels(*identity) for histogram in metrics.histograms
        )
        self._items, self._input, self._output = (counter.labels(*identity) for counter in metrics.counters)
        self._failed = metrics.failed.labels(*identity)
        self._last_run = metrics.last_run.labels(*identity)
        self._failures: Mapping[CallStatus, Counter] = {
            status: metrics.failures.labels(*identity, status.value)
            for status in CallStatus
            if status is not CallStatus.SUCCESS
        }
        self._layers: dict[str, Histogram] = {}
        self._stages: dict[int, list[Summary]] = {}

    def observe(self, job: Job[Any], now_ns: int) -> None:
        """Count a call that ended at `now_ns`, a reading of `perf_counter_ns`."""
        timestamps = job.timestamps
        if job.status is not CallStatus.SUCCESS:
            self._failed.observe(max(0, now_ns - timestamps.received) / 1e9)
            self._failures[job.status].inc()
        elif job.is_observed:
            self._observed.observe((timestamps.encode_end - timestamps.received) / 1e9)
        else:
            self._items.inc(job.rows or 1)
            self._request.observe((timestamps.encode_end - timestamps.received) / 1e9)
            self._queue.observe(timestamps.queue_ns / 1e9)
            self._input.inc((timestamps.decode_end - timestamps.decode_start) / 1e9)
            self._compute.observe((timestamps.forward_end - timestamps.forward_start) / 1e9)
            self._output.inc((timestamps.encode_end - timestamps.forward_end) / 1e9)
        if job.leads_run and timestamps.forward_end and not job.is_observed:
            self._count_run(job)

    def _count_run(self, job: Job[Any]) -> None:
        size, timestamps = max(1, job.batch_size), job.timestamps
        self._last_run.set(time())
        self._batch_size.observe(size)
        stages = self._stages.get(size)
        if stages is None and len(self._stages) < MAX_BATCH_SIZES:
            labels = self._metrics.stage.labels
            stages = self._stages[size] = [labels(*self._identity, size, stage) for stage in RUN_STAGES]
        if stages is not None:
            decode, forward, encode = stages
            decode.observe((timestamps.decode_end - timestamps.decode_start) / 1e9)
            forward.observe((timestamps.forward_end - timestamps.forward_start) / 1e9)
            # 0 if the client of that call left, or its response could not be encoded
            if timestamps.encode_end:
                encode.observe((timestamps.encode_end - timestamps.forward_end) / 1e9)
        if job.trace is not None:
            for layer in job.trace.layers:
                if layer.type not in self._layers:
                    self._layers[layer.type] = self._metrics.layer.labels(*self._identity, layer.type)
                self._layers[layer.type].observe(layer.duration_us / 1e6)
