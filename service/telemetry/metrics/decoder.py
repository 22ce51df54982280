"""The processes that decode large bodies."""

from collections.abc import Iterator

import prometheus_client.core as prometheus
from prometheus_client.core import Metric

from service.decoding import DECODERS
from service.telemetry.metrics.collector import Snapshot


class DecoderMetrics:
    """`kuiper_decoders` and `kuiper_decoders_ended_total`."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the gauge and the counter."""
        del snapshot
        yield prometheus.GaugeMetricFamily(
            "kuiper_decoders", "processes that decode large bodies", value=DECODERS.running
        )
        ended = prometheus.CounterMetricFamily(
            "kuiper_decoders_ended",
            "processes that decoded large bodies and were ended, or ended, during a request",
            labels=("code",),
        )
        for code, count in DECODERS.ended.items():
            ended.add_metric((code,), count)
        yield ended
