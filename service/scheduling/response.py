"""The response to a call, as bytes that are ready to be sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

BytesLike = bytes | bytearray | memoryview
"""Contiguous bytes; each item of a memoryview is one byte."""


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """An encoded response.

    Attributes:
        pieces: the bytes of its body; arrays among them are sent from where they lie, without a copy.
        media_type: its `Content-Type`.
        headers: its other headers.
    """

    pieces: Sequence[BytesLike]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Number of bytes of its body."""
        return sum(map(len, self.pieces))

    @property
    def body(self) -> bytes:
        """Its body, in one piece."""
        return b"".join(self.pieces)
