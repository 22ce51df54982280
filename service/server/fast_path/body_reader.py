"""Reads the rest of a large body straight to where it is to lie."""

import asyncio
from collections.abc import Callable

from service.server.fast_path.request import DirectRequest
from service.server.reader import Reader


class BodyReader(Reader):
    """Stands in for a connection's protocol until a body is whole: no piece of it is an object of its own.

    Args:
        request: the request, its head and perhaps some of its body taken.
        protocol: the connection's protocol, which learns all else.
        done: called when the body is whole.
    """

    def __init__(self, request: DirectRequest, protocol: asyncio.Protocol, done: Callable[[], None]) -> None:
        super().__init__(protocol)
        self._request = request
        self._done = done

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next bytes go: not beyond the body, what follows it is another request."""
        del sizehint
        return self._request.room

    def buffer_updated(self, nbytes: int) -> None:
        """Note that bytes have come."""
        self._request.fill(nbytes)
        if not self._request.missing:
            self._done()
