"""How long calls by gRPC took, under the name and the labels of OpenTelemetry's semantic conventions."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.families import add_histogram
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_SYSTEM = "grpc"


class RpcCallMetrics:
    """`rpc_server_call_duration_seconds`, by method and status code."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the histogram."""
        family = prometheus.HistogramMetricFamily(
            "rpc_server_call_duration_seconds",
            "seconds from the arrival of a call by gRPC to its end",
            labels=("rpc_system_name", "rpc_method", "rpc_response_status_code"),
        )
        for ending, histogram in snapshot.rpc_calls:
            add_histogram(family, (_SYSTEM, *ending), histogram)
        yield family
