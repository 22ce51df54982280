"""The families of `prometheus_client`, which is imported when metrics are first shown: a start needs none of it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
        UnknownMetricFamily,
    )
else:

    def __getattr__(name: str) -> Any:
        """Return what the library has by a name."""
        from prometheus_client import core  # noqa: PLC0415  # as above

        return getattr(core, name)


__all__ = [
    "CounterMetricFamily",
    "GaugeMetricFamily",
    "HistogramMetricFamily",
    "Metric",
    "UnknownMetricFamily",
]
