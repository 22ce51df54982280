"""Time limit of building and compiling, so that no file keeps the compiler busy for ever."""

import math
from time import monotonic

from engine.errors import BuildError, BuildTimeoutError, describe_problem


class BuildClock:
    """Build timeout, checked between operators and between kernels.

    Args:
        seconds: maximum seconds; None for no limit.
        doing: the activity, for the error: `building`, `planning` or `compiling`.
    """

    def __init__(self, seconds: float | None, doing: str) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._doing = doing
        self._started = monotonic()

    def check(self, type: str, name: str) -> None:
        """Check that there is time for an operator.

        Args:
            type: the operator's PNNX type.
            name: its name in the file.

        Raises:
            BuildTimeoutError: the time is up.
        """
        if monotonic() - self._started > self._seconds:
            raise BuildTimeoutError(
                f"{self._doing} timed out at {type} {name}: it takes longer than the {self._seconds:g} seconds "
                "of max_build_seconds"
            )


UNLIMITED = BuildClock(None, "building")
"""For what may take as long as it takes."""


def checked_seconds(seconds: float | None) -> float | None:
    """Return a number of seconds that building may take.

    Raises:
        BuildError: it is no number above 0.
    """
    if seconds is not None and not seconds > 0:
        raise BuildError(describe_problem("max_build_seconds", str(seconds), "a number above 0, or None"))
    return seconds
