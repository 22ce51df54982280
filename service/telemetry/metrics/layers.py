"""How long the layers of traced runs took."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import MODEL_LABELS, add_histogram
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class LayerMetrics:
    """`kuiper_layer_seconds`, for each model and type of operator."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the histograms of all loaded models."""
        family = prometheus.HistogramMetricFamily(
            "kuiper_layer_seconds",
            "seconds that the layers of traced runs took, by type of operator",
            labels=(*MODEL_LABELS, "type"),
        )
        for model in snapshot.models:
            for operator_type, histogram in list(model.statistics.layer_seconds.items()):
                add_histogram(family, (*model.labels, operator_type), histogram)
        yield family
