"""All that the server tells of itself beside its logs."""

from collections.abc import Set
from dataclasses import dataclass
from typing import Protocol

from starlette.types import ASGIApp

from service.config.settings import Settings, SettingsError
from service.scheduling.call import CallRecord, Observer
from service.telemetry.http_accounts import HttpAccounts
from service.telemetry.http_requests import HttpRequests
from service.telemetry.metrics import Metrics, make_collectors
from service.telemetry.recent import RecentRuns
from service.telemetry.statistics import Statistics


class Spans(Protocol):
    """Spans for OpenTelemetry; the module that makes them is imported only where they are asked for."""

    def observe(self, record: CallRecord) -> None:
        """Draw a call."""

    def around(self, app: ASGIApp, ignored_paths: Set[str]) -> ASGIApp:
        """Return a middleware that gives every request its span, but for those to some paths."""

    def close(self) -> None:
        """Send what is left."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The observers of one application, and what is read from them.

    Attributes:
        statistics: what the models did.
        http_requests: what HTTP requests took.
        http_accounts: told of every HTTP request when it is over.
        metrics: what Prometheus reads.
        recent: the last traced runs.
        spans: for OpenTelemetry; None where nobody asked for them.
    """

    statistics: Statistics
    http_requests: HttpRequests
    http_accounts: HttpAccounts
    metrics: Metrics
    recent: RecentRuns
    spans: Spans | None

    @property
    def observers(self) -> list[Observer]:
        """Who is told of every call when it is over."""
        observers: list[Observer] = [self.statistics, self.recent, *self.metrics.observers]
        return observers if self.spans is None else [*observers, self.spans]

    def close(self) -> None:
        """Send what is left; nothing is observed any more."""
        if self.spans is not None:
            self.spans.close()


def make_telemetry(settings: Settings) -> Telemetry:
    """Make what the settings ask for.

    Raises:
        SettingsError: they ask for OpenTelemetry, and it is not installed.
    """
    statistics, http_requests = Statistics(), HttpRequests()
    recent = RecentRuns(settings.recent_traces)
    spans = _make_spans(settings) if settings.otel else None
    accounts = HttpAccounts(http_requests, settings.access_log)
    metrics = Metrics(make_collectors())
    return Telemetry(statistics, http_requests, accounts, metrics, recent, spans)


def _make_spans(settings: Settings) -> Spans:
    try:
        from service.telemetry.spans import make_spans  # noqa: PLC0415  # off means not even imported
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise SettingsError("otel: needs the extra kuiper-serve[otel], which is not installed") from error
    return make_spans(settings.otel_layers)
