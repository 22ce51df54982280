"""The collectors of the server, in the order in which `/metrics` shows them."""

from collections.abc import Callable

from service.telemetry.metrics.collector import Collector
from service.telemetry.metrics.decoder import DecoderMetrics
from service.telemetry.metrics.http_requests import HttpRequestMetrics
from service.telemetry.metrics.inference import InferenceMetrics
from service.telemetry.metrics.layers import LayerMetrics
from service.telemetry.metrics.models import ModelMetrics
from service.telemetry.metrics.polls import PollMetrics
from service.telemetry.metrics.programs import ProgramMetrics
from service.telemetry.metrics.requests import RequestMetrics
from service.telemetry.metrics.rpc_calls import RpcCallMetrics
from service.telemetry.metrics.traffic import TrafficMetrics
from service.telemetry.metrics.workers import WorkerMetrics

COLLECTORS: list[Callable[[], Collector]] = [
    InferenceMetrics,
    RequestMetrics,
    LayerMetrics,
    ModelMetrics,
    TrafficMetrics,
    ProgramMetrics,
    WorkerMetrics,
    DecoderMetrics,
    PollMetrics,
    HttpRequestMetrics,
    RpcCallMetrics,
]
"""Every application makes one collector of each; a new metric adds its class here."""

SUMMED = (InferenceMetrics, RequestMetrics, LayerMetrics, HttpRequestMetrics, RpcCallMetrics)
"""What these show is of all processes together, where there are several: the statistics are. The families of all others
are of one process; `processes.py` puts those of all together."""


def make_collectors() -> list[Collector]:
    """Return a new collector of each registered class."""
    return [make() for make in COLLECTORS]
