"""What the connections of a server share: how many there may be, and how much their clients may leave unread."""

import asyncio
import logging
from collections import Counter
from math import inf
from types import ModuleType
from typing import TYPE_CHECKING

from service.config.settings import Settings
from service.server.throttle import Throttle

if TYPE_CHECKING:
    from service.server.connection import Connection

resource: ModuleType | None
try:
    import resource
except ModuleNotFoundError:  # Windows counts handles, of which there are plenty
    resource = None

MAX_CONNECTIONS = 4096
"""Connections that there may be, where there are file descriptors for them."""
RESERVED_DESCRIPTORS = 64
"""File descriptors that are left for all else."""
SEND_TIMEOUT, LEAST_RATE = 30.0, 4 << 10
"""Seconds in which a client has to read so many bytes per second of its response."""
TICK_SECONDS = 1.0
"""How often all connections are checked for clients that let the server wait for too long."""
DRIP_RATE = 1 << 10
"""Bytes per second: a client that sends or reads less drips."""
_SHARE = 16
"""One in so many connections is closed at once, so that not every new one has all the others looked at."""

_logger = logging.getLogger(__name__)


class Connections:
    """The open connections of a server. Used on the event loop only.

    Args:
        most: maximum number; beyond it, those of least use are closed.
        unsent_bytes: maximum bytes that clients leave unread, all together; beyond it, the slowest are cut off.

    Attributes:
        throttle: begins requests that were sent ahead of the responses, and those that are not urgent, a few at a time.
        is_leaving: whether each is to end with its next response, so that clients connect to other servers.
    """

    def __init__(self, most: int, unsent_bytes: int) -> None:
        self.throttle = Throttle()
        self.is_leaving = False
        self._most = most
        self._unsent_bytes = unsent_bytes
        self._open: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, connection: "Connection") -> None:
        """Add a new connection; where it is one too many, close others, or this one if all others run requests."""
        self._open.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        if len(self._open) > self._most:
            self._make_room(connection)

    def remove(self, connection: "Connection") -> None:
        """Remove a connection that is closed."""
        self._open.discard(connection)

    def leave(self) -> None:
        """Have every connection end with its next response."""
        self.is_leaving = True
        for connection in list(self._open):
            connection.make_last()

    def limit_unsent(self, now: float) -> None:
        """Cut the slowest readers off until what all leave unread keeps within the limit.

        A client that has not had a second yet, or is the only one, is left alone.

        Args:
            now: the time of the event loop's clock.
        """
        readers = [connection for connection in self._open if connection.is_unread]
        total = sum(reader.unsent_bytes() for reader in readers)
        if total <= self._unsent_bytes:
            return
        readers.sort(key=lambda reader: (reader.pace(now), reader.since))
        for reader in readers[:-1]:
            if total <= self._unsent_bytes or reader.pace(now) == inf:
                break
            total -= reader.unsent_bytes()
            reader.cut_off("is the slowest to read, and the responses of all take too much memory")

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._timer = loop.call_later(TICK_SECONDS, self._tick) if self._open else None
        for connection in list(self._open):
            connection.check(now)
        self.limit_unsent(now)

    def _make_room(self, newest: "Connection") -> None:
        """Close the connections of least use.

        The order: those whose clients drip; those of addresses with more than an equal share; the slowest, of which
        idle ones are the first; the oldest. What has begun less than a second ago is closed only where all else runs.
        """
        now = asyncio.get_running_loop().time()
        others = [connection for connection in self._open if connection is not newest]
        shares = Counter(connection.address for connection in others)
        equal = self._most / max(1, len(shares))

        def order(connection: "Connection") -> tuple[bool, bool, float, float]:
            pace = connection.pace(now)
            return pace >= DRIP_RATE, shares[connection.address] <= equal, pace, connection.since

        waiting = sorted((connection for connection in others if not connection.is_running), key=order)
        slowest = waiting[: max(1, self._most // _SHARE)]
        closed = [connection for connection in slowest if connection.pace(now) < inf]
        closed = closed or slowest[:1] or [newest]
        _logger.info("%d open connections, the maximum: closing %d", self._most, len(closed))
        for connection in closed:
            self.remove(connection)
            connection.abort()


def open_connections(settings: Settings) -> Connections:
    """Return what the connections of a server with these settings share."""
    return Connections(max_connections(), settings.unsent_bytes)


def max_connections() -> int:
    """Return the maximum number of open connections, as the limit of file descriptors allows."""
    if resource is None:
        return MAX_CONNECTIONS
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, int(descriptors) - RESERVED_DESCRIPTORS))
