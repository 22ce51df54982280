"""Who sends a request, as far as limits and fair shares are concerned: an API key, else an address."""

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Any

Peer = str | bytes
"""The digest of an API key that was accepted, or an address where no key is needed."""

_PREFIX_BITS = 64
"""Bits of an IPv6 address that tell clients apart: the rest is the client's own to choose (RFC 4291, 2.5.4)."""


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
