"""How much of the responses of gRPC clients have not read yet."""

from collections import Counter
from typing import Any

from service.context import Peer
from service.errors import ServiceError

SMALL_BYTES = 1 << 14
"""Maximum bytes of a response that is not counted: the client's system takes it, whether the client reads or not."""
_SHARE = 4
"""One client may have so large a part of all unread responses, one in so many bytes."""


class UnreadResponses:
    """Bytes of responses that clients have not read; who has too many gets no more until it has read some.

    gRPC offers no way to end a call whose response is not read; the client's connection has to end. Used on the event
    loop only.

    Args:
        limit: maximum bytes for all clients together, of which one has a quarter.
    """

    def __init__(self, limit: int) -> None:
        self._most = max(1, limit // _SHARE)
        self._held: Counter[Peer] = Counter()

    def check(self, client: Peer) -> None:
        """Check whether a client may get more.

        Raises:
            ServiceError: 429 `responses_unread`.
        """
        held = self._held.get(client, 0)
        if held > self._most:
            message = (
                f"{held} bytes of responses are unread; the maximum per client is {self._most}: read them"
            )
            raise ServiceError(429, "responses_unread", message, {"unread": held, "limit": self._most})

    def add(self, client: Peer, size: int) -> None:
        """Count a response that is being sent."""
        self._held[client] += size

    def remove(self, client: Peer, size: int) -> None:
        """Note that a response is read, or never will be."""
        self._held[client] -= size
        if self._held[client] <= 0:
            del self._held[client]

    def add_until_done(self, client: Peer, size: int, rpc: Any) -> None:
        """Count the response to a call of gRPC until that is over."""
        self.add(client, size)
        rpc.add_done_callback(lambda _: self.remove(client, size))
