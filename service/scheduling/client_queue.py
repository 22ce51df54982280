"""Calls in the order in which they are served: clients of one priority take turns.

After J. Nagle, "On Packet Switches With Infinite Storage", IEEE Transactions on Communications 35(4), 1987: one queue
for each source, and a packet of each in turn. Where there is no room, the longest queue gives way (B. Suter et al.,
"Buffer management schemes for supporting TCP in gigabit routers", IEEE JSAC 17(6), 1999).
"""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, zip_longest
from typing import Any

from service.peer import Peer
from service.scheduling.scheduled_call import ScheduledCall


class ClientQueue:
    """Calls by priority, 1 first; within a priority one of each client in turn, those of one client as they came.

    Any call can be taken out at any time. All methods but `overgrown` take the same time however many calls there are.

    Attributes:
        length: number of calls; each request asks for it several times.
    """

    def __init__(self) -> None:
        self._classes: dict[int, dict[Peer, dict[ScheduledCall[Any], None]]] = {}
        self.length = 0

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[ScheduledCall[Any]]:
        """Yield the calls as they would be served now."""
        for priority in sorted(self._classes):
            turns = zip_longest(*self._classes[priority].values())
            yield from (scheduled for scheduled in chain.from_iterable(turns) if scheduled is not None)

    def push(self, scheduled: ScheduledCall[Any]) -> None:
        """Add a call; calls are added in the order in which they came."""
        clients = self._classes.get(scheduled.priority)
        if clients is None:
            clients = self._classes[scheduled.priority] = {}
        calls = clients.get(scheduled.call.client)
        if calls is None:
            clients[scheduled.call.client] = {scheduled: None}
        else:
            calls[scheduled] = None
        self.length += 1

    def pop(self) -> ScheduledCall[Any]:
        """Take the first call out; its client's next call comes after those of the other clients."""
        priority = min(self._classes)
        clients = self._classes[priority]
        client, calls = next(iter(clients.items()))
        scheduled = next(iter(calls))
        del calls[scheduled]
        del clients[client]
        if calls:
            clients[client] = calls
        elif not clients:
            del self._classes[priority]
        self.length -= 1
        return scheduled

    def discard(self, scheduled: ScheduledCall[Any]) -> bool:
        """Take a call out; returns whether it was in."""
        clients = self._classes.get(scheduled.priority, {})
        calls = clients.get(scheduled.call.client, {})
        if scheduled not in calls:
            return False
        del calls[scheduled]
        if not calls:
            del clients[scheduled.call.client]
            if not clients:
                del self._classes[scheduled.priority]
        self.length -= 1
        return True

    def overgrown(
        self, client: Peer, others: Collection[ScheduledCall[Any]] = ()
    ) -> ScheduledCall[Any] | None:
        """Return the call that gives way to one more of a client: the last of the client that has most calls.

        None where no client would still have as many calls as this one afterwards.

        Args:
            client: who wants room.
            others: calls that have left this queue, and wait elsewhere; they give way last.
        """
        counts = Counter(scheduled.call.client for scheduled in others)
        for clients in self._classes.values():
            counts.update({each: len(calls) for each, calls in clients.items()})
        if len(counts) == self.length + len(others):
            return None
        most, held = counts.most_common(1)[0]
        if most == client or held <= counts[client] + 1:
            return None
        classes = [priority for priority, clients in self._classes.items() if most in clients]
        if classes:
            return next(reversed(self._classes[max(classes)][most]))
        theirs = (scheduled for scheduled in others if scheduled.call.client == most)
        return max(theirs, key=lambda scheduled: scheduled.number)
