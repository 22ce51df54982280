"""How long HTTP requests took, under the name and the labels of OpenTelemetry's semantic conventions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import add_histogram
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class HttpRequestMetrics:
    """`http_server_request_duration_seconds`, by method, route and status."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the histogram."""
        family = prometheus.HistogramMetricFamily(
            "http_server_request_duration_seconds",
            "seconds from the head of an HTTP request to the end of its answer",
            labels=("http_request_method", "http_route", "http_response_status_code"),
        )
        for endpoint, histogram in snapshot.http_durations.series():
            add_histogram(family, endpoint, histogram)
        yield family
