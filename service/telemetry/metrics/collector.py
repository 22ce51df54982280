"""What a class of metrics has to offer."""

from collections.abc import Iterable
from typing import Protocol

from prometheus_client.core import Metric

from service.telemetry.metrics.snapshot import Snapshot


class Collector(Protocol):
    """Turns a snapshot of the server into metric families.

    A collector that also has a method `observe(CallRecord)` is a `CallObserver`: it gets the record of every call, and
    can count what no other part of the server counts.
    """

    def collect(self, snapshot: Snapshot) -> Iterable[Metric]:
        """Yield metric families with their samples. Labels must never hold what a client typed.

        Called once for each request to `/metrics`, on any thread. With several processes, gauges and counters are
        copied for all of them, and histograms of `prometheus_client` are shared by themselves.
        """
