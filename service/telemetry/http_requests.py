"""How long HTTP requests took: OpenTelemetry's `http.server.request.duration`."""

from service.telemetry.histogram import HTTP_SECONDS, Histogram

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
OTHER_METHOD = "_OTHER"
"""Stands for every method that the semantic conventions do not know."""

Endpoint = tuple[str, str, str]
"""Method, route template (empty where no route took the request) and status."""


class HttpRequests:
    """Durations by method, route and status; no more series than the server has routes and statuses for."""

    def __init__(self) -> None:
        self._endpoints: dict[Endpoint, Histogram] = {}

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            method: as the client sent it.
            route: template of the route that answered; never the path that the client typed.
            status: of the answer.
            seconds: from its head to the end of its answer.
        """
        known = method if method in KNOWN_METHODS else OTHER_METHOD
        endpoint = (known, route or "", str(status))
        histogram = self._endpoints.get(endpoint)
        if histogram is None:
            histogram = self._endpoints[endpoint] = Histogram(HTTP_SECONDS)
        histogram.observe(seconds)

    def series(self) -> list[tuple[Endpoint, Histogram]]:
        """Return all durations so far."""
        return list(self._endpoints.items())
