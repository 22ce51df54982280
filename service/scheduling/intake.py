"""What the surfaces have in common: a request's head makes an intake, its body makes that a call, a run an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from service.repository.loaded_model import LoadedModel
from service.scheduling.call import Call, Surface

Header = Callable[[str], str | None]
"""Looks a request's header up by its name, in lower case."""


Bytes = bytes | bytearray | memoryview
"""Bytes that lie in one piece; of a memoryview each item is one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, ready to be sent.

    Attributes:
        pieces: the bytes of its body; arrays among them are sent from where they lie.
        media_type: its `Content-Type`.
        headers: its other headers.
    """

    pieces: Sequence[Bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """How many bytes its body has."""
        return sum(len(piece) for piece in self.pieces)

    @property
    def body(self) -> bytes:
        """Its body, in one piece."""
        return b"".join(self.pieces)


class Intake(Protocol):
    """What is known of a call before the body of its request has come."""

    @property
    def model(self) -> LoadedModel:
        """The model that is asked for."""

    @property
    def surface(self) -> Surface:
        """The interface that the request came by."""

    @property
    def request_id(self) -> str:
        """The request's id."""

    @property
    def lead(self) -> int:
        """How many zero bytes to put before the body, so that arrays in it lie where the machine reads them best."""

    def call(self, body: bytes | bytearray, received_ns: int) -> Call[Answer]:
        """Return the call.

        Args:
            body: the whole body, with what leads it. The call drops it when it is decoded.
            received_ns: `perf_counter_ns` of the moment when it was complete.

        Raises:
            ServiceError: the body is not what the surface takes, as far as that is seen before it is decoded.
        """
