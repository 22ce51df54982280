"""What a connection reads: packets of bounded size, in a buffer that all connections share."""

import asyncio
from typing import Final

PACKET_BYTES: Final = 64 << 10
"""Maximum bytes of a packet. A client that sends ahead of the responses takes no more memory than that."""

_packet: Final = memoryview(bytearray(PACKET_BYTES))
"""Where every packet is received: it is copied from there before the next one, on the event loop's one thread."""


class PacketReader(asyncio.BufferedProtocol):
    """Reads for a connection's protocol, in packets smaller than the event loop would make them.

    Args:
        protocol: the connection's protocol, which gets the data and all other events of the transport.
    """

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._data_received = protocol.data_received
        self.connection_lost = protocol.connection_lost  # type: ignore[method-assign]  # saves a call for each event
        self.eof_received = protocol.eof_received  # type: ignore[method-assign]
        self.pause_writing = protocol.pause_writing  # type: ignore[method-assign]
        self.resume_writing = protocol.resume_writing  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where the next packet goes."""
        del sizehint
        return _packet

    def buffer_updated(self, nbytes: int) -> None:
        """Take a packet."""
        self._data_received(bytes(_packet[:nbytes]))
