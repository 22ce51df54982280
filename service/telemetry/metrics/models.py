"""The loaded models: what they are, how many requests wait for them, and which programs were refused."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class ModelMetrics:
    """What is loaded: queues, tasks, precisions of layers, refused programs."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the gauges and counters of all loaded models."""
        pending = prometheus.GaugeMetricFamily(
            "nv_inference_pending_request_count", "requests that wait for the model", labels=MODEL_LABELS
        )
        capacity = prometheus.GaugeMetricFamily(
            "kuiper_queue_capacity", "requests that may wait for the model", labels=MODEL_LABELS
        )
        info = prometheus.GaugeMetricFamily(
            "kuiper_model_info", "1 for each loaded model", labels=(*MODEL_LABELS, "task")
        )
        refused = prometheus.CounterMetricFamily(
            "kuiper_program_refused",
            "compiled programs that are not used, because they differ from numpy or the compiler failed",
            labels=MODEL_LABELS,
        )
        layers = prometheus.GaugeMetricFamily(
            "kuiper_model_layers",
            "operators of the model by the precision that they are computed in",
            labels=(*MODEL_LABELS, "precision"),
        )
        for model in snapshot.models:
            pending.add_metric(model.labels, model.waiting)
            capacity.add_metric(model.labels, model.queue_size)
            info.add_metric((*model.labels, model.task), 1)
            refused.add_metric(model.labels, model.refused_programs)
            for precision, count in model.precisions.items():
                layers.add_metric((*model.labels, precision), count)
        yield from (pending, capacity, info, refused, layers)
