"""What came of looking for changes of models."""

from collections.abc import Iterator

import prometheus_client.core as prometheus
from prometheus_client.core import Metric

from service.telemetry.metrics.collector import Snapshot


class PollMetrics:
    """`kuiper_polls`, when the last one succeeded, and which changes it led to."""

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        """Yield the metrics of the poller, where there is one."""
        poller = snapshot.polls
        if poller is None:
            return
        polls = prometheus.CounterMetricFamily(
            "kuiper_polls", "looks for changes of models, where they are polled", labels=("outcome",)
        )
        polls.add_metric(("listed",), poller.succeeded)
        polls.add_metric(("failed",), poller.failed)
        changes = prometheus.CounterMetricFamily(
            "kuiper_poll_changes",
            "models that were loaded, refused or removed because a poll found a change",
            labels=("outcome",),
        )
        for outcome, count in poller.changes.items():
            changes.add_metric((outcome,), count)
        yield from (polls, changes)
        yield prometheus.GaugeMetricFamily(
            "kuiper_poll_last_success_timestamp_seconds",
            "when a poll could last list the models, in seconds since 1970",
            value=poller.last_success,
        )
