"""How fast refusals are answered: a client that is refused again and again waits a little for each answer."""

import asyncio
from collections import OrderedDict

from service.peer import Peer

RATE = 100.0
"""Refusals of one client that are answered each second, beyond a burst."""
BURST = 32
"""Refusals of one client that are answered at once."""
MOST_WAITING = 256
"""Answers that wait; where there are more, they are sent at once. What waits holds a connection open."""
MOST_SECONDS = 1.0
_CLIENTS_KEPT = 1024


class RefusalPace:
    """Delays answers to those who ask on although they are refused.

    A refusal costs a quarter of a millisecond. One client that asks again as soon as it is refused, on dozens of
    connections, would otherwise take the event loop from all others. Used on the event loop only.
    """

    def __init__(self) -> None:
        self._due: OrderedDict[Peer, float] = OrderedDict()
        self._waiting = 0

    async def wait(self, client: Peer) -> None:
        """Return when a refusal of a client may be answered, at once as long as it has had few."""
        now = asyncio.get_running_loop().time()
        earliest = now - BURST / RATE
        due = max(self._due.get(client, earliest), earliest) + 1 / RATE
        if due - now > MOST_SECONDS or self._waiting >= MOST_WAITING:
            due = now + MOST_SECONDS if self._waiting < MOST_WAITING else now
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
        if len(self._due) > _CLIENTS_KEPT:
            self._due.popitem(last=False)
