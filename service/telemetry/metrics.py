"""What Prometheus reads at `/metrics`: the models' statistics under Triton's names, and what Triton has no names for.

Nothing is counted here. Each reading turns the accounts that the server keeps anyway into samples, for the models that
are loaded at that moment: the series of a model that is gone are gone as well, and no label is what a client typed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    UnknownMetricFamily,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from service.telemetry.histogram import Histogram
from service.telemetry.http_requests import HttpRequests
from service.telemetry.statistics import Duration, ModelStatistics, Statistics

TEXT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_LABELS = ("model", "version")

_DURATIONS: tuple[tuple[str, str, Callable[[ModelStatistics], Duration]], ...] = (
    ("request", "answered requests, whole", lambda model: model.success),
    ("queue", "waiting of answered requests", lambda model: model.queue),
    ("compute_input", "decoding of answered requests", lambda model: model.compute_input),
    ("compute_infer", "runs of answered requests", lambda model: model.compute_infer),
    ("compute_output", "encoding of answered requests", lambda model: model.compute_output),
)
_HISTOGRAMS: tuple[tuple[str, str, Callable[[ModelStatistics], Histogram]], ...] = (
    ("kuiper_request_seconds", "answered requests, whole", lambda model: model.request_seconds),
    ("kuiper_queue_seconds", "waiting of answered requests", lambda model: model.queue_seconds),
    ("kuiper_compute_seconds", "runs of answered requests", lambda model: model.compute_seconds),
    (
        "kuiper_observed_request_seconds",
        "answered requests that asked for captured operands or statistics, whole",
        lambda model: model.observed_seconds,
    ),
    ("kuiper_batch_size", "items of each run", lambda model: model.batch_sizes),
)


@dataclass(frozen=True, slots=True)
class ModelState:
    """A loaded model at this moment.

    Attributes:
        name: its name.
        version: its version.
        task: what it does, as its configuration says; empty where it says nothing.
        pending: requests that wait for it.
        queue_size: requests that may.
        programs_refused: compiled programs that are not used, as numpy computed something else or the compiler failed.
    """

    name: str
    version: str
    task: str
    pending: int
    queue_size: int
    programs_refused: int


@dataclass(frozen=True, slots=True)
class ServerState:
    """The server at this moment.

    Attributes:
        models: every loaded model and version.
        workers: threads that run models.
        workers_busy: those of them that do.
    """

    models: Sequence[ModelState]
    workers: int
    workers_busy: int


class Metrics:
    """The metrics of one application.

    Args:
        statistics: what the models did.
        http_requests: what HTTP requests took.
    """

    def __init__(self, statistics: Statistics, http_requests: HttpRequests) -> None:
        self._statistics = statistics
        self._http = _HttpCollector(http_requests)
        self._process = (
            ProcessCollector(registry=None),
            PlatformCollector(registry=None),
            GCCollector(registry=CollectorRegistry()),  # it takes no None
        )

    def render(self, state: ServerState, accept: str = "") -> tuple[bytes, str]:
        """Return the metrics in the format that an `Accept` header asks for, and its media type.

        Args:
            state: the server at this moment.
            accept: the header.
        """
        registry = CollectorRegistry()
        for collector in (_ModelCollector(self._statistics, state), self._http, *self._process):
            registry.register(collector)
        # not prometheus_client's choose_encoder: it fails on some headers, and repeats what they say
        for accepted in accept.split(","):
            if accepted.partition(";")[0].strip() == "application/openmetrics-text":
                text: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]  # theirs
                return text, openmetrics.CONTENT_TYPE_LATEST
        return generate_latest(registry), TEXT_TYPE


class _ModelCollector(Collector):
    def __init__(self, statistics: Statistics, state: ServerState) -> None:
        self._statistics = statistics
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield the samples of all loaded models, and of the workers."""
        state = self._state
        self._statistics.keep({(model.name, model.version) for model in state.models})
        models = [self._statistics.of(model.name, model.version) for model in state.models]
        yield from _triton_counters(models)
        yield from _histograms(models)
        yield from _gauges(state)
        yield _refused(state)


class _HttpCollector(Collector):
    def __init__(self, http_requests: HttpRequests) -> None:
        self._http_requests = http_requests

    def collect(self) -> Iterator[Metric]:
        """Yield the durations of HTTP requests."""
        family = HistogramMetricFamily(
            "http_server_request_duration_seconds",
            "HTTP requests, from the head to the end of the answer",
            labels=("http_request_method", "http_route", "http_response_status_code"),
        )
        for endpoint, histogram in self._http_requests.series():
            _add(family, endpoint, histogram)
        yield family


def _triton_counters(models: Iterable[ModelStatistics]) -> Iterator[Metric]:
    """Yield counters under Triton's names.

    They have no `_total` at their end, as both formats would have it of a counter: their type is left open, which
    changes nothing for whoever reads them.
    """
    counted = [(_labels(model), model) for model in models]
    success = _counter("nv_inference_request_success", "requests that were answered")
    failure = _counter("nv_inference_request_failure", "requests that were not answered, by reason", "reason")
    items = _counter("nv_inference_count", "items (rows) of answered requests")
    runs = _counter("nv_inference_exec_count", "runs; a batch is one")
    for labels, model in counted:
        success.add_metric(labels, model.success.count)
        items.add_metric(labels, model.inference_count)
        runs.add_metric(labels, model.execution_count)
        for reason, count in model.failures.items():
            failure.add_metric((*labels, reason.value), count)
    yield from (success, failure, items, runs)
    for part, text, duration_of in _DURATIONS:
        family = _counter(f"nv_inference_{part}_duration_us", f"microseconds together: {text}")
        for labels, model in counted:
            family.add_metric(labels, duration_of(model).ns // 1000)
        yield family


def _histograms(models: Sequence[ModelStatistics]) -> Iterator[Metric]:
    for name, text, histogram_of in _HISTOGRAMS:
        family = HistogramMetricFamily(name, text, labels=_LABELS)
        for model in models:
            _add(family, _labels(model), histogram_of(model))
        yield family
    layers = HistogramMetricFamily(
        "kuiper_layer_seconds", "layers of traced runs, by operator type", labels=(*_LABELS, "type")
    )
    for model in models:
        for operator_type, histogram in list(model.layer_seconds.items()):
            _add(layers, (*_labels(model), operator_type), histogram)
    yield layers


def _gauges(state: ServerState) -> Iterator[Metric]:
    pending = GaugeMetricFamily(
        "nv_inference_pending_request_count", "requests that wait for the model", labels=_LABELS
    )
    capacity = GaugeMetricFamily(
        "kuiper_queue_capacity", "requests that may wait for the model", labels=_LABELS
    )
    info = GaugeMetricFamily("kuiper_model_info", "1 for each loaded model", labels=(*_LABELS, "task"))
    for model in state.models:
        labels = (model.name, model.version)
        pending.add_metric(labels, model.pending)
        capacity.add_metric(labels, model.queue_size)
        info.add_metric((*labels, model.task), 1)
    yield from (pending, capacity, info)
    yield GaugeMetricFamily("kuiper_workers", "threads that run models", value=state.workers)
    yield GaugeMetricFamily("kuiper_workers_busy", "threads that run a model now", value=state.workers_busy)


def _refused(state: ServerState) -> Metric:
    family = CounterMetricFamily(
        "kuiper_program_refused",
        "compiled programs that are not used, as numpy computed something else or the compiler failed",
        labels=_LABELS,
    )
    for model in state.models:
        family.add_metric((model.name, model.version), model.programs_refused)
    return family


def _labels(model: ModelStatistics) -> tuple[str, str]:
    return model.name, model.version


def _counter(name: str, text: str, *labels: str) -> UnknownMetricFamily:
    return UnknownMetricFamily(name, text, labels=(*_LABELS, *labels))


def _add(family: HistogramMetricFamily, labels: Sequence[str], histogram: Histogram) -> None:
    buckets = [
        (str(bound) if isfinite(bound) else "+Inf", float(count)) for bound, count in histogram.cumulative()
    ]
    family.add_metric(labels, buckets, histogram.total)
