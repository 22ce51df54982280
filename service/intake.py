"""What the surfaces have in common: a request's head makes an intake, its body makes that a call, a run an answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from service.call import Call, Surface
from service.loaded_model import LoadedModel

Header = Callable[[str], str | None]
"""Looks a request's header up by its name, in lower case."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, ready to be sent.

    Attributes:
        body: its bytes.
        media_type: its `Content-Type`.
        headers: its other headers.
    """

    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


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

    def call(self, body: bytes, received_ns: int) -> Call[Answer]:
        """Return the call.

        Args:
            body: the whole body, with what leads it. The call drops it when it is decoded.
            received_ns: `perf_counter_ns` of the moment when it was complete.

        Raises:
            ServiceError: the body is not what the surface takes, as far as that is seen before it is decoded.
        """
