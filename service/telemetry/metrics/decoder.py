"""The processes that decode large bodies."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from service.telemetry.metrics import prometheus
from service.telemetry.metrics.snapshot import Snapshot

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class DecoderMetrics:
    """`kuiper_decoders` and `kuiper_decoders_ended_total`."""

    def collect(self, snapshot: Snapshot) -> "Iterator[Metric]":
        """Yield the gauge and the counter."""
        yield prometheus.GaugeMetricFamily(
            "kuiper_decoders", "processes that decode large bodies", value=snapshot.decoders
        )
        ended = prometheus.CounterMetricFamily(
            "kuiper_decoders_ended",
            "processes that decoded large bodies and were ended, or ended, during a request",
            labels=("code",),
        )
        for code, count in snapshot.decoders_ended.items():
            ended.add_metric((code,), count)
        yield ended
