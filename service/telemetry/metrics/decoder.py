"""The process that decodes large images."""

from collections.abc import Iterator

import prometheus_client.core as prometheus
from prometheus_client.core import Metric

from service.images.decoder import DECODER
from service.telemetry.metrics.collector import Snapshot


class DecoderMetrics:
    """`kuiper_image_decoders` and `kuiper_image_decoders_ended_total`."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the gauge and the counter."""
        del snapshot
        yield prometheus.GaugeMetricFamily(
            "kuiper_image_decoders", "processes that decode large images", value=DECODER.is_running
        )
        ended = prometheus.CounterMetricFamily(
            "kuiper_image_decoders_ended",
            "processes that decoded large images and were ended, or ended, during a request",
            labels=("code",),
        )
        for code, count in DECODER.ended.items():
            ended.add_metric((code,), count)
        yield ended
