"""How long the layers of traced runs took."""

from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily, Metric

from service.telemetry.metrics.families import MODEL_LABELS, add_histogram
from service.telemetry.metrics.snapshot import Snapshot


class LayerMetrics:
    """`kuiper_layer_seconds`, for each model and type of operator."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the histograms of all loaded models."""
        family = HistogramMetricFamily(
            "kuiper_layer_seconds",
            "seconds that the layers of traced runs took, by type of operator",
            labels=(*MODEL_LABELS, "type"),
        )
        for model in snapshot.models:
            for operator_type, histogram in list(model.statistics.layer_seconds.items()):
                add_histogram(family, (*model.labels, operator_type), histogram)
        yield family
