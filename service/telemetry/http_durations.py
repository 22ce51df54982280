"""How long HTTP requests took: OpenTelemetry's `http.server.request.duration`."""

from service.histogram import HTTP_SECONDS, Histogram

KNOWN_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
"""Methods that OpenTelemetry's semantic conventions know."""
OTHER_METHOD = "_OTHER"
"""Stands for every method that the semantic conventions do not know."""

Endpoint = tuple[str, str, str]
"""Method, template of the route (empty where no route matched) and status."""


class HttpDurations:
    """Durations by method, route and status: no more series than the server has routes and statuses."""

    def __init__(self) -> None:
        self._endpoints: dict[Endpoint, Histogram] = {}

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> Endpoint:
        """Count a request that was answered.

        Args:
            method: its method, as the client sent it.
            route: the template of its route, never the path that the client sent; None where no route matched.
            status: status of its answer.
            seconds: from its head to the end of its answer.

        Returns:
            What it was counted under.
        """
        known = method if method in KNOWN_METHODS else OTHER_METHOD
        endpoint = (known, route or "", str(status))
        histogram = self._endpoints.get(endpoint)
        if histogram is None:
            histogram = self._endpoints[endpoint] = Histogram(HTTP_SECONDS)
        histogram.observe(seconds)
        return endpoint

    def series(self) -> list[tuple[Endpoint, Histogram]]:
        """Return all durations so far."""
        return list(self._endpoints.items())
