"""The loaded models: what they are, how many requests wait for them, and what came of their programs."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from service.telemetry.metrics.snapshot import ModelSnapshot, Snapshot
from service.telemetry.statistics import MODEL_LABELS

_GAUGES: tuple[tuple[str, str, Callable[[ModelSnapshot], int]], ...] = (
    (
        "nv_inference_pending_request_count",
        "requests that wait for the model",
        lambda model: model.waiting,
    ),
    ("kuiper_queue_capacity", "requests that may wait for the model", lambda model: model.queue_size),
    (
        "kuiper_program_waiting",
        "shapes of requests waiting for the compiler or for memory",
        lambda model: model.compilation.waiting,
    ),
    (
        "kuiper_program_shapes_not_compiled",
        "shapes of recent requests that were too seldom or too quick in numpy for a program to be compiled",
        lambda model: model.compilation.not_compiled,
    ),
)
_COUNTERS: tuple[tuple[str, str, Callable[[ModelSnapshot], int]], ...] = (
    (
        "kuiper_program_refused",
        "compiled programs that are not used, because they differ from numpy or the compiler failed",
        lambda model: model.refused_programs,
    ),
    (
        "kuiper_program_compiled",
        "programs compiled, at load and in the background",
        lambda model: model.compilation.compiled,
    ),
)


class ModelMetrics:
    """What is loaded: queues, tasks, precisions of layers, programs."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the gauges and counters of all loaded models."""
        for name, text, value_of in _GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                gauge.add_metric(model.labels, value_of(model))
            yield gauge
        for name, text, value_of in _COUNTERS:
            counter = CounterMetricFamily(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                counter.add_metric(model.labels, value_of(model))
            yield counter
        info = GaugeMetricFamily(
            "kuiper_model_info", "1 for each loaded model", labels=(*MODEL_LABELS, "task")
        )
        layers = GaugeMetricFamily(
            "kuiper_model_layers",
            "operators of the model by the precision that they are computed in",
            labels=(*MODEL_LABELS, "precision"),
        )
        for model in snapshot.models:
            info.add_metric((*model.labels, model.task), 1)
            for precision, count in model.precisions.items():
                layers.add_metric((*model.labels, precision), count)
        yield from (info, layers)
