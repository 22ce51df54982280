"""Which connections are closed where there are too many."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeVar

GRACE_SECONDS = 1.0
"""What a client does is judged when it has had so long to do it."""
DRIP_RATE = 1 << 10
"""Bytes of a body per second: what arrives more slowly drips."""
_SHARE = 16
"""One in so many connections is closed at once, so that not every new one has all the others looked at."""

_logger = logging.getLogger(__name__)
_Connection = TypeVar("_Connection")


class Use(Enum):
    """What a connection is used for: the server waits for a request, or for the client to read, or has work to do."""

    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    RUN = "run"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Activity:
    """What a client is doing.

    Attributes:
        use: what the connection is used for.
        since: when that began, in seconds of the event loop's clock.
        rate: bytes per second that have arrived of a body, or that the client takes of a response.
        address: where the client is: of IPv6 the network; empty where that is not known.
    """

    use: Use
    since: float
    rate: float = 0.0
    address: str = ""


class _Rank(IntEnum):
    """How early a connection is closed: first what clients hardly do who mean no harm, last what has just begun."""

    SILENT = 0
    DRIPPING = 1
    IDLE = 2
    SENDING = 3
    READING = 4
    NEW = 5


def choose_closed(
    activities: Mapping[_Connection, Activity], newest: _Connection, most: int, now: float
) -> list[_Connection]:
    """Return the connections of least use, which are to be closed so that no more than `most` are left.

    The order: silent connections and slow bodies; those of clients above a fair share; then by the number of
    connections of the client, largest first; the slowest; the oldest.

    Args:
        activities: of all connections that are open.
        newest: the one that has just been made; it is closed if all others have requests that run.
        most: connections that there may be.
        now: the time of the event loop's clock.
    """
    excess = len(activities) - most
    if excess <= 0:
        return []
    others = {connection: activity for connection, activity in activities.items() if connection is not newest}
    shares = Counter(activity.address for activity in others.values())
    fair = most / max(1, len(shares))
    found = []
    for connection, activity in others.items():
        rank = _rank(activity, now)
        if rank is not None:
            held = shares[activity.address]
            is_used = rank > _Rank.DRIPPING
            order = (is_used, is_used and held <= fair, rank, -held, activity.rate, activity.since)
            found.append((order, connection))
    victims = [(order[2], connection) for order, connection in sorted(found, key=lambda entry: entry[0])]
    closed = [
        connection for rank, connection in victims[: max(excess, most // _SHARE)] if rank is not _Rank.NEW
    ]
    if not closed:
        closed = [victims[0][1] if victims else newest]
    _logger.info("%d open connections, the maximum: closing %d", most, len(closed))
    return closed


def _rank(activity: Activity, now: float) -> _Rank | None:
    """Return how early a connection is closed; None: not for any other."""
    is_new = now - activity.since < GRACE_SECONDS
    match activity.use:
        case Use.RUN:
            return None
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
