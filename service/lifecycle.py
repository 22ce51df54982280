"""The phase that the server is in, and the number of requests that it has accepted."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Phase(Enum):
    """What the server is doing."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Lifecycle:
    """The server's phase; only the thread of the event loop changes it.

    Attributes:
        failure: why the server could not start, for people; None otherwise.
    """

    def __init__(self) -> None:
        self._phase = Phase.STARTING
        self._accepted = 0
        self.failure: str | None = None

    @property
    def phase(self) -> Phase:
        """What the server is doing."""
        return self._phase

    @property
    def accepted(self) -> int:
        """Number of requests that were accepted and are not answered yet."""
        return self._accepted

    def started(self) -> None:
        """Note that models are loaded and workers run; a server that is draining already keeps draining."""
        if self._phase is Phase.STARTING:
            self._phase = Phase.READY

    def drain(self) -> None:
        """Accept no more requests."""
        self._phase = Phase.DRAINING

    @contextmanager
    def accept(self) -> Iterator[None]:
        """Count a request as accepted for as long as the context lasts."""
        self._accepted += 1
        try:
            yield
        finally:
            self._accepted -= 1
