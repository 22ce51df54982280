"""The context of a request: its id, when it arrived, which model it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from starlette.requests import Request
from starlette.types import Scope

from service.peer import Peer, address_of

REQUEST_ID_HEADER = "X-Request-ID"
_ACCEPTABLE_ID = re.compile(r"[\x21-\x7e]{1,128}")
_HEADER = REQUEST_ID_HEADER.lower().encode()
_KEY = "kuiper.context"
_ARRIVED = "kuiper.arrived"
_ids = Random()  # noqa: S311  # ids are no secrets, and the randomness of the system would cost a system call for each


@dataclass(slots=True)
class RequestContext:
    """One request.

    Attributes:
        request_id: the id that the client sent, or a new one.
        started: when the request arrived, on the clock of `time.perf_counter`.
        model: name of the loaded model that the request asks for; never text that a client made up.
        headers: the first header of each name; names are in lower case.
        client: who sent it: its address, until a key of it is accepted.
        is_admin: whether that key is an admin key.
        is_begun: whether its response has begun.
        is_ended: whether all of its response was sent.
    """

    request_id: str
    started: float = field(default_factory=perf_counter)
    model: str | None = None
    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    client: Peer = ""
    is_admin: bool = False
    is_begun: bool = False
    is_ended: bool = False

    def header(self, name: bytes) -> str | None:
        """Return the first header of a name, which is in lower case; None where the request has none."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def elapsed(self) -> float:
        """Return the seconds since the request arrived."""
        return perf_counter() - self.started


def open_context(scope: Scope) -> RequestContext:
    """Start the context of a request."""
    headers = dict(reversed(scope["headers"]))
    context = RequestContext(
        choose_request_id(headers), headers=headers, client=address_of(scope.get("client"))
    )
    scope[_KEY] = context
    return context


def context_of(request: Request) -> RequestContext:
    """Return the context of a request."""
    return context_in(request.scope)


def context_in(scope: Scope) -> RequestContext:
    """Return the context of the request that an ASGI scope belongs to."""
    context = scope[_KEY]
    if not isinstance(context, RequestContext):
        raise TypeError(f"{_KEY} holds a {type(context).__name__}")
    return context


def mark_arrived(scope: Scope) -> None:
    """Note that all of a request has arrived: to receive its body takes no time."""
    scope[_ARRIVED] = True


def has_arrived(scope: Scope) -> bool:
    """Return whether all of a request is known to have arrived."""
    return _ARRIVED in scope


def choose_request_id(headers: Mapping[bytes, bytes]) -> str:
    """Return the id that the client sent, or a new one if it sent none or an unacceptable one.

    Args:
        headers: the request's, with names in lower case.
    """
    value = headers.get(_HEADER)
    if value is not None:
        text = value.decode("latin-1")
        if _ACCEPTABLE_ID.fullmatch(text):
            return text
    return f"{_ids.getrandbits(128):032x}"
