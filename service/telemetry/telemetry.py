"""The parts of an application's telemetry, in one place."""

from collections.abc import Set
from typing import TYPE_CHECKING

from fastapi.telemetry import TelemetryConfig

from service.config.extras import needs_extra
from service.config.settings import Settings
from service.scheduling.job import CallObserver
from service.telemetry.metrics import COLLECTORS, OBSERVERS, Metrics
from service.telemetry.recent_runs import RecentRuns
from service.telemetry.request_log import RequestLog
from service.telemetry.statistics import InferenceStatistics

if TYPE_CHECKING:
    from service.telemetry.spans import OpenTelemetrySpans


class Telemetry:
    """The telemetry of one application.

    Args:
        settings: the server's settings.
        process: number of this process among several; None where there is one.

    Attributes:
        spans: makes OpenTelemetry's spans; None where the settings ask for none.
        metrics: shows all counts to Prometheus.
        statistics: counts the calls and runs of each model.
        request_log: records each HTTP request and each call by gRPC when it is over.
        recent: keeps the last traced runs.

    Raises:
        SettingsError: the settings ask for OpenTelemetry, which is not installed or not configured.
    """

    def __init__(self, settings: Settings, process: int | None = None) -> None:
        self.spans = None if settings.otel == "off" else _make_spans(settings)
        self.metrics = Metrics(COLLECTORS, process)
        self.statistics = InferenceStatistics(self.metrics.registry, self.metrics.source)
        self.request_log = RequestLog(self.metrics.registry)
        self.recent = RecentRuns()

    @property
    def observers(self) -> list[CallObserver]:
        """All that get each job that has ended."""
        observers: list[CallObserver] = [self.statistics, self.recent, *OBSERVERS]
        return observers if self.spans is None else [*observers, self.spans]

    def of_requests(self, ignored_paths: Set[str]) -> TelemetryConfig:
        """Return what FastAPI records of HTTP requests by itself: spans, where the settings ask for them."""
        if self.spans is None:
            return {"tracing": False, "metrics": False, "logs": False}
        return self.spans.of_requests(ignored_paths)

    def close(self) -> None:
        """Send the spans that are left; to be called when all calls have ended."""
        if self.spans is not None:
            self.spans.close()


def _make_spans(settings: Settings) -> "OpenTelemetrySpans":
    with needs_extra("otel:", "otel", "opentelemetry"):
        from service.telemetry.spans import make_spans  # noqa: PLC0415  # off means not even imported
    return make_spans(settings.otel == "layers")
