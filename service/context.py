"""The context of a request: its id, when it arrived, which model it names, and who sends it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from random import Random
from time import perf_counter
from typing import Any

from starlette.requests import Request
from starlette.types import Scope

Peer = str | bytes
"""Who sends a request, as far as limits and fair shares are concerned.

The digest of an API key that was accepted, or an address where no key is needed.
"""
_PREFIX_BITS = 64
"""Bits of an IPv6 address that distinguish clients: the rest is the client's own to choose (RFC 4291, 2.5.4)."""
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


def address_of(peer: Sequence[Any] | None) -> str:
    """Return where a client is: of IPv6 the network, empty where the address is not known.

    Args:
        peer: address and port of the other end of a connection.
    """
    if not peer:
        return ""
    address = str(peer[0])
    return network_of(address) if ":" in address else address


@lru_cache(maxsize=4096)
def network_of(address: str) -> str:
    """Return the network of an IPv6 address that one client is taken to own; an IPv4 address that it stands for.

    Args:
        address: as the system gives it; a zone, as in `fe80::1%eth0`, is part of it.
    """
    try:
        known = IPv6Address(address)
    except AddressValueError:
        return address
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    network = IPv6Address(int(known) >> _PREFIX_BITS << _PREFIX_BITS)
    return f"{network}%{known.scope_id}" if known.scope_id else str(network)
