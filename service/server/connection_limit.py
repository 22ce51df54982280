"""How many connections there may be, and which of them is closed for a new one."""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

GRACE_SECONDS = 1.0
"""What a client does is judged when it has had so long to do it."""
_SHARE = 16
"""One in so many connections is closed at once, so that not every new one has all the others looked at."""

_logger = logging.getLogger(__name__)


class Use(IntEnum):
    """What a connection is used for, by how little is lost when it is closed."""

    IDLE = 0
    HEAD = 1
    BODY = 2
    ANSWER = 3


@dataclass(frozen=True, slots=True)
class Activity:
    """What a client is doing, where the server waits for it.

    Attributes:
        use: what the connection is used for.
        since: when that began, in seconds of the event loop's clock.
        rate: bytes per second that have arrived of a body, or that the client takes of an answer.
    """

    use: Use
    since: float
    rate: float = 0.0


class Closable(Protocol):
    """A connection, as far as it may be closed for another."""

    def activity(self, now: float) -> Activity | None:
        """Return what its client is doing; None while it has a request that is being answered."""

    @property
    def address(self) -> str:
        """Where its client is."""

    def abort(self) -> None:
        """Close at once."""


class ConnectionLimit:
    """Keeps the number of connections within a limit: where one comes too many, those of least use are closed.

    Used on the event loop only.

    Args:
        most: connections that there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most

    def admit(self, connections: Collection[Closable], newest: Closable) -> None:
        """Close connections where there are too many; the newest, if all others are being answered.

        Args:
            connections: all that are open, the newest among them.
            newest: the one that has just been made.
        """
        excess = len(connections) - self._most
        if excess <= 0:
            return
        victims = self._least_used([connection for connection in connections if connection is not newest])
        count = max(excess, self._most // _SHARE)
        _logger.info(
            "%d connections are open, the most: %d are closed", self._most, min(count, len(victims)) or 1
        )
        for connection in victims[:count] or (newest,):
            connection.abort()

    def _least_used(self, connections: Collection[Closable]) -> list[Closable]:
        """Return the connections that may be closed, first those that are to be closed first.

        Of one use, those go first whose client has most connections, then the slowest, then the oldest.
        """
        now = asyncio.get_running_loop().time()
        shares = Counter(connection.address for connection in connections)
        found = []
        for connection in connections:
            activity = connection.activity(now)
            if activity is not None and (activity.use is Use.IDLE or now - activity.since >= GRACE_SECONDS):
                place = (activity.use, -shares[connection.address], activity.rate, activity.since)
                found.append((place, connection))
        return [connection for _, connection in sorted(found, key=lambda entry: entry[0])]
