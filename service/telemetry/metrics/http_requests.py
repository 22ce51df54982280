"""How long HTTP requests took, under the name and the labels of OpenTelemetry's semantic conventions."""

from collections.abc import Iterator

from prometheus_client.core import HistogramMetricFamily, Metric

from service.telemetry.metrics.families import add_histogram
from service.telemetry.metrics.snapshot import Snapshot


class HttpRequestMetrics:
    """`http_server_request_duration_seconds`, by method, route and status."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the histogram."""
        family = HistogramMetricFamily(
            "http_server_request_duration_seconds",
            "seconds from the head of an HTTP request to the end of its answer",
            labels=("http_request_method", "http_route", "http_response_status_code"),
        )
        for endpoint, histogram in snapshot.http_durations.series():
            add_histogram(family, endpoint, histogram)
        yield family
