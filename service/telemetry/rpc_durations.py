"""How long calls by gRPC took: OpenTelemetry's `rpc.server.call.duration`."""

from service.histogram import HTTP_SECONDS, Histogram

RpcEnding = tuple[str, str]
"""Method, with its service before it, and name of the status code."""


class RpcDurations:
    """Durations by method and status code."""

    def __init__(self) -> None:
        self._endings: dict[RpcEnding, Histogram] = {}

    def observe(self, method: str, status: str, seconds: float) -> RpcEnding:
        """Count a call that is over.

        Args:
            method: its service and method, which are the server's own.
            status: name of its status code.
            seconds: from its arrival to its end.

        Returns:
            What it was counted under.
        """
        ending = method, status
        histogram = self._endings.get(ending)
        if histogram is None:
            histogram = self._endings[ending] = Histogram(HTTP_SECONDS)
        histogram.observe(seconds)
        return ending

    def series(self) -> list[tuple[RpcEnding, Histogram]]:
        """Return all durations so far."""
        return list(self._endings.items())
