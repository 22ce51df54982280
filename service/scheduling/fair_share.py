"""Start-time fair queuing: the model that has had the least of the workers' time is served next.

After P. Goyal, H. M. Vin, H. Cheng, "Start-time Fair Queueing", SIGCOMM 1996. The cost of a piece of work is known only
when it is done. Therefore a model is charged its average cost when the work begins, and the difference when it ends.
"""

_WEIGHT = 0.1
"""Weight of the latest work in the moving average."""


class VirtualClock:
    """The virtual time of the server, which all models share.

    Attributes:
        now: start tag of the work that was begun last, in seconds of service; never decreases.
    """

    def __init__(self) -> None:
        self.now = 0.0


class FairShare:
    """How much of the workers' time one model has had.

    Args:
        clock: the virtual time.

    Attributes:
        tag: start tag of its next work, in seconds of service; the model with the least tag is served next.
        mean: moving average of what its work took, in seconds.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.tag = clock.now
        self.mean = 0.0

    def join(self) -> None:
        """Compete for workers again. A model earns no credit for the time in which it had no calls."""
        self.tag = max(self.tag, self._clock.now)

    def begin(self) -> float:
        """Begin a piece of work; returns what it is charged, for `end`."""
        self._clock.now = max(self._clock.now, self.tag)
        self.tag += self.mean
        return self.mean

    def end(self, charged: float, seconds: float) -> None:
        """End a piece of work.

        Args:
            charged: what `begin` returned.
            seconds: how long it took.
        """
        self.tag += seconds - charged
        self.mean = self.mean + _WEIGHT * (seconds - self.mean) if self.mean else seconds
