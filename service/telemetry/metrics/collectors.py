"""The collectors of the server."""

from collections.abc import Callable

from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.decoder import DecoderMetrics
from service.telemetry.metrics.models import ModelMetrics
from service.telemetry.metrics.polls import PollMetrics
from service.telemetry.metrics.traffic import TrafficMetrics
from service.telemetry.metrics.workers import WorkerMetrics

COLLECTORS: list[Callable[[], Collector]] = [
    ModelMetrics,
    TrafficMetrics,
    WorkerMetrics,
    DecoderMetrics,
    PollMetrics,
]
"""Every application makes one collector of each; a new metric adds its class here."""


def make_collectors() -> list[Collector]:
    """Return a new collector of each registered class."""
    return [make() for make in COLLECTORS]
