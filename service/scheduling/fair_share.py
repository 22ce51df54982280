"""Start-time fair queuing: who has had the least of the workers' time is next.

After P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996. What a turn takes is known only when it
is over: it is charged by the mean of late when it begins, and the difference when it ends.
"""

_WEIGHT = 0.1
"""Weight of the latest turn in the moving mean."""


class VirtualClock:
    """Start tag of the turn that was begun last; never goes back.

    Attributes:
        now: the tag, in seconds of service.
    """

    def __init__(self) -> None:
        self.now = 0.0


class FairShare:
    """What one model has had of the workers' time.

    Attributes:
        tag: start tag of its next turn, in seconds of service; the least of all models' is next.
        mean: moving mean of what its turns took, in seconds.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.tag = clock.now
        self.mean = 0.0

    def join(self) -> None:
        """Begin to compete: time that it did not want in the past earns it no more now."""
        self.tag = max(self.tag, self._clock.now)

    def begin(self) -> float:
        """Begin a turn; returns what it is charged, for `end`."""
        self._clock.now = max(self._clock.now, self.tag)
        self.tag += self.mean
        return self.mean

    def end(self, charged: float, seconds: float) -> None:
        """End a turn that took `seconds`."""
        self.tag += seconds - charged
        self.mean = self.mean + _WEIGHT * (seconds - self.mean) if self.mean else seconds
