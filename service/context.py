"""The context of a request: its id, when it arrived, which model it names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from time import perf_counter

from starlette.requests import Request
from starlette.types import Scope

REQUEST_ID_HEADER = "X-Request-ID"
_ACCEPTABLE_ID = re.compile(r"[\x21-\x7e]{1,128}")
_HEADER = REQUEST_ID_HEADER.lower().encode()
_KEY = "kuiper.context"
_ids = Random()  # noqa: S311  # ids are no secrets, and the randomness of the system would cost a system call for each


@dataclass(slots=True)
class RequestContext:
    """One request.

    Attributes:
        request_id: the id that the client sent, or a new one.
        started: when the request arrived, on the clock of `time.perf_counter`.
        model: name of the loaded model that the request asks for; never text that a client made up.
    """

    request_id: str
    started: float = field(default_factory=perf_counter)
    model: str | None = None

    def elapsed(self) -> float:
        """Return the seconds since the request arrived."""
        return perf_counter() - self.started


def open_context(scope: Scope) -> RequestContext:
    """Start the context of a request."""
    context = RequestContext(choose_request_id(scope["headers"]))
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


def choose_request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the id that the client sent, or a new one if it sent none or an unacceptable one.

    Args:
        headers: pairs of a name in lower case and a value.
    """
    for name, value in headers:
        if name == _HEADER:
            text = value.decode("latin-1")
            if _ACCEPTABLE_ID.fullmatch(text):
                return text
    return f"{_ids.getrandbits(128):032x}"
