"""How requests have ended whose version the traffic of their model chose; versions are judged by these alone."""


class RequestEndings:
    """Counts requests by model and version. Used on the event loop."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}

    def observe(self, model: str, version: str, *, is_answered: bool) -> None:
        """Count a request that has ended."""
        ended, failed = self._counts.get((model, version), (0, 0))
        self._counts[model, version] = ended + 1, failed + (not is_answered)

    def of(self, model: str, version: str) -> tuple[int, int]:
        """Return how many requests have ended, and how many of these were not answered."""
        return self._counts.get((model, version), (0, 0))
