"""How requests have ended in all of several processes, for the judgement of versions."""

from service.telemetry.process_statistics import Counters
from service.traffic.request_endings import RequestEndings

_ENDINGS = "endings"
_SIZE = 2


class ProcessEndings(RequestEndings):
    """Counts where all processes see it.

    Args:
        counters: where all processes count.
    """

    def __init__(self, counters: Counters) -> None:
        super().__init__()
        self._counters = counters
        for group in counters.own.groups(_ENDINGS):
            _, model, version = group
            ended, failed = counters.own.row((group, ""), _SIZE) or (0, 0)
            self._counts[model, version] = int(ended), int(failed)

    def observe(self, model: str, version: str, *, is_answered: bool) -> None:
        """Count a request that has ended."""
        super().observe(model, version, is_answered=is_answered)
        self._counters.own.write(((_ENDINGS, model, version), ""), self._counts[model, version])

    def of(self, model: str, version: str) -> tuple[int, int]:
        """Return how many requests have ended in all processes together, and how many of these were not answered."""
        name = ((_ENDINGS, model, version), "")
        rows = [memory.row(name, _SIZE) or (0, 0) for memory in self._counters.memories]
        return int(sum(row[0] for row in rows)), int(sum(row[1] for row in rows))
