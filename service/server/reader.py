"""What a connection reads: its bytes go where the server wants them, not where the event loop would put them."""

import asyncio
from typing import Final

PACKET_BYTES: Final = 64 << 10
"""Most bytes of a packet. Clients that send before their requests are looked at take no more each, however many."""

_packet: Final = memoryview(bytearray(PACKET_BYTES))
"""Where every packet comes first: it is taken from there before the next one comes, on the event loop's one thread."""


class Reader(asyncio.BufferedProtocol):
    """Reads for a connection's protocol, which learns all else as if it read itself.

    Args:
        protocol: the connection's protocol.
    """

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]  # not even a call more
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]


class PacketReader(Reader):
    """Hands over what comes in packets smaller than the event loop would make them."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__(protocol)
        self._take = protocol.data_received

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next packet goes."""
        del sizehint
        return _packet

    def buffer_updated(self, nbytes: int) -> None:
        """Take a packet."""
        self._take(bytes(_packet[:nbytes]))
