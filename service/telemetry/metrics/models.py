"""The loaded models: what they are, how many requests wait for them, and what came of their programs."""

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from service.graph.view import count_precisions
from service.repository.loaded_model import LoadedModel
from service.scheduling.policy import scheduling_policy
from service.telemetry.metrics.collector import Snapshot
from service.telemetry.statistics import MODEL_LABELS

_PROGRAMS: tuple[
    tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, Callable[[LoadedModel], int]], ...
] = (
    (
        CounterMetricFamily,
        "kuiper_program_refused",
        "compiled programs that are not used, because they differ from numpy or the compiler failed",
        lambda model: model.graph.verification.refused_count,
    ),
    (
        CounterMetricFamily,
        "kuiper_program_compiled",
        "programs compiled, at load and in the background",
        lambda model: model.graph.compilation.compiled,
    ),
    (
        GaugeMetricFamily,
        "kuiper_program_waiting",
        "shapes of requests waiting for the compiler or for memory",
        lambda model: model.graph.compilation.waiting,
    ),
    (
        GaugeMetricFamily,
        "kuiper_program_shapes_not_compiled",
        "shapes of recent requests that were too seldom or too quick in numpy for a program to be compiled",
        lambda model: model.graph.compilation.not_compiled,
    ),
)


class ModelMetrics:
    """What is loaded: queues, tasks, precisions of layers, programs."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the gauges and counters of all loaded models."""
        for make, name, text, value_of in _PROGRAMS:
            family = make(name, text, labels=MODEL_LABELS)
            for model in snapshot.models:
                family.add_metric((model.name, model.version), value_of(model))
            yield family
        pending = _gauge("nv_inference_pending_request_count", "requests that wait for the model")
        capacity = _gauge("kuiper_queue_capacity", "requests that may wait for the model")
        info = _gauge("kuiper_model_info", "1 for each loaded model", "task")
        layers = _gauge(
            "kuiper_model_layers",
            "operators of the model by the precision that they are computed in",
            "precision",
        )
        for model in snapshot.models:
            labels = model.name, model.version
            pending.add_metric(labels, snapshot.scheduler.waiting(model))
            capacity.add_metric(labels, scheduling_policy(model.config, snapshot.settings).queue_size)
            info.add_metric((*labels, model.config.task), 1)
            for precision, count in count_precisions(model.graph).items():
                layers.add_metric((*labels, precision), count)
        yield from (pending, capacity, info, layers)


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=(*MODEL_LABELS, *labels))
