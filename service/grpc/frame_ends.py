"""Where frames of HTTP/2 end in a stream of bytes, so that one of our own can be put between them.

After RFC 9113, 4.1 (frames), 6.10 (nothing may come between the parts of a header block) and 6.8 (GOAWAY).
"""

_HEAD_BYTES = 9
"""Length, type, flags and stream of a frame."""
_HEADER_FRAMES = frozenset((0x1, 0x5, 0x9))
"""HEADERS, PUSH_PROMISE and CONTINUATION: others follow them unless they end the header block."""
_END_HEADERS = 0x4

GOAWAY = b"\0\0\x08\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\0"
"""Tells a client to begin new calls on another connection; those that it has begun until it hears of it are answered.

That is what the highest number of a stream with NO_ERROR says: a server is about to shut down gracefully.
"""


class FrameEnds:
    """Follows what a server sends on a connection."""

    __slots__ = ("_begun", "_between", "_skip")

    def __init__(self) -> None:
        self._begun = b""  # the first bytes of a head whose others have not come yet
        self._between = False  # whether a frame may be put before the next one: not before the first
        self._skip = 0  # bytes that still belong to the last frame

    @property
    def is_between(self) -> bool:
        """Whether a frame may be put behind what has been sent so far."""
        return self._between and not self._skip and not self._begun

    def advance(self, data: bytes) -> int:
        """Take note of what is sent next; returns the last place in it where a frame may be put, -1 if there is none.

        Args:
            data: the bytes, as they come.
        """
        before = len(self._begun)
        joined = self._begun + data if before else data
        position, last, size = self._skip, -1, len(joined)
        while position < size:
            if self._between:
                last = position
            if size - position < _HEAD_BYTES:
                self._begun, self._skip = joined[position:], 0
                return last - before if last > before else -1
            kind, flags = joined[position + 3], joined[position + 4]
            self._between = kind not in _HEADER_FRAMES or bool(flags & _END_HEADERS)
            position += _HEAD_BYTES + int.from_bytes(joined[position : position + 3], "big")
        self._begun, self._skip = b"", position - size
        if self._between and position == size:
            last = size
        return last - before if last >= before else -1
