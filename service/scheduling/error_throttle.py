"""Throttle of 503 responses: a client that retries at once is delayed after a burst."""

import asyncio
from collections import OrderedDict

from service.context import Peer

RATE = 100.0
"""503 responses per second to one client, beyond a burst."""
BURST = 32
"""503 responses to one client without a delay."""
MAX_WAITING = 256
"""Maximum delayed responses, as each keeps its connection open; beyond it, responses are not delayed."""
MAX_SECONDS = 1.0
_MAX_CLIENTS = 1024


class ErrorThrottle:
    """Delays 503 responses to clients that retry at once. Used on the event loop only.

    A 503 costs a quarter of a millisecond. Beside a client that ignores `Retry-After` on 48 connections, the 99th
    percentile of others would otherwise be 72 to 89 ms instead of 13 to 15.
    """

    def __init__(self) -> None:
        self._due: OrderedDict[Peer, float] = OrderedDict()
        self._waiting = 0

    async def wait(self, client: Peer) -> None:
        """Return when a client may get its 503: at once, within its burst."""
        now = asyncio.get_running_loop().time()
        earliest = now - BURST / RATE
        due = max(self._due.get(client, earliest), earliest) + 1 / RATE
        if self._waiting >= MAX_WAITING:
            return
        if due - now > MAX_SECONDS:
            due = now + MAX_SECONDS
        else:
            self._note(client, due)
        if due <= now:
            return
        self._waiting += 1
        try:
            await asyncio.sleep(due - now)
        finally:
            self._waiting -= 1

    def _note(self, client: Peer, due: float) -> None:
        self._due[client] = due
        self._due.move_to_end(client)
        if len(self._due) > _MAX_CLIENTS:
            self._due.popitem(last=False)
