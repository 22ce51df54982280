"""How many requests shadow runs may meet: so few that the 99th percentile of latency hardly knows of them."""

_EARNED = 1 / 200
"""Meetings that each request allows."""
_MOST = 8.0
"""Most meetings that are saved up."""


class ShadowBudget:
    """Allows shadow runs to be in progress while one request in 200 is, in the long run.

    A shadow run takes memory bandwidth, caches, the other half of a core, and turns of the interpreter. What does not
    meet any request costs nothing, so that a server with pauses makes all the runs that are asked for.
    """

    def __init__(self) -> None:
        self._saved = _MOST

    @property
    def is_open(self) -> bool:
        """Whether a run may begin, even if it meets a request."""
        return self._saved >= 1

    def earn(self) -> None:
        """Count a request."""
        if self._saved < _MOST:
            self._saved += _EARNED

    def meet(self) -> None:
        """Count a request that was in progress during a shadow run."""
        self._saved -= 1
