"""How many connections there may be, and which of them is closed for a new one."""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

GRACE_SECONDS = 1.0
"""What a client does is judged when it has had so long to do it."""
DRIP_RATE = 1 << 10
"""Bytes of a body per second: what arrives more slowly drips."""
_SHARE = 16
"""One in so many connections is closed at once, so that not every new one has all the others looked at."""

_logger = logging.getLogger(__name__)


class Use(Enum):
    """What a connection is used for where the server waits for its client: for a request, or for it to read."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Activity:
    """What a client is doing, where the server waits for it.

    Attributes:
        use: what the connection is used for.
        since: when that began, in seconds of the event loop's clock.
        rate: bytes per second that have arrived of a body, or that the client takes of a response.
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
        """Where its client is: of IPv6 the network."""

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
        closed = [connection for rank, connection in victims[:count] if rank is not _Rank.NEW]
        if not closed:
            closed = [victims[0][1] if victims else newest]
        _logger.info("%d open connections, the maximum: closing %d", self._most, len(closed))
        for connection in closed:
            connection.abort()

    def _least_used(self, connections: Collection[Closable]) -> list[tuple["_Rank", Closable]]:
        """Return the connections that may be closed, first those that are to be closed first.

        Those that are silent or drip go first, then those of clients that have more than a fair share. Of one rank,
        those go first whose client has most connections, then the slowest, then the oldest.
        """
        now = asyncio.get_running_loop().time()
        shares = Counter(connection.address for connection in connections)
        fair = self._most / max(1, len(shares))
        found = []
        for connection in connections:
            activity = connection.activity(now)
            rank = None if activity is None else _rank(activity, now)
            if activity is not None and rank is not None:
                held = shares[connection.address]
                is_used = rank > _Rank.DRIPPING
                order = (is_used, is_used and held <= fair, rank, -held, activity.rate, activity.since)
                found.append((order, connection))
        return [(order[2], connection) for order, connection in sorted(found, key=lambda entry: entry[0])]


class _Rank(IntEnum):
    """How early a connection is closed: first what clients hardly do who mean no harm, last what has just begun."""

    SILENT = 0
    DRIPPING = 1
    IDLE = 2
    SENDING = 3
    READING = 4
    NEW = 5


def _rank(activity: Activity, now: float) -> _Rank | None:
    """Return how early a connection is closed; None: not for any other."""
    is_new = now - activity.since < GRACE_SECONDS
    match activity.use:
        case Use.IDLE:
            return _Rank.IDLE
        case Use.HEAD:
            return _Rank.NEW if is_new else _Rank.SILENT
        case Use.BODY if is_new:
            return _Rank.NEW
        case Use.BODY:
            return _Rank.DRIPPING if activity.rate < DRIP_RATE else _Rank.SENDING
        case Use.RESPONSE:
            return None if is_new else _Rank.READING
