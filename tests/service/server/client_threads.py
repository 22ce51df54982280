"""Clients that ask a server side by side for as long as a test looks at something else."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

PAUSE = 0.005
"""Seconds between two requests of a client: something is always under way, and processors are left for the servers."""


class ClientThreads(ABC):
    """Clients on threads of their own, which begin when the context is entered and have ended when it is left.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def _run(self, number: int) -> None:
        """Ask until `_stopped` is set: the client of that number, from 0."""
