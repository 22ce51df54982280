"""Which `Host` headers are accepted. See docs/guides/access.md.

A site can have its own name resolve to 127.0.0.1 in the browsers of its visitors (DNS rebinding). To a browser, the
server is then a part of that site, whose pages may send it anything and read its responses. Only `Host` has
the site's name.
"""

import socket
from collections.abc import Sequence
from ipaddress import ip_address

from service.config.origins import ALL, is_address
from service.errors import ServiceError, shown

_LOOPBACK_NAME = "localhost"
_LOOPBACK_ADDRESSES = ("127.", "::1", "::ffff:127.")
"""What the address of a connection begins with that nobody but this machine can make."""
_SEPARATORS = frozenset(".:")
"""A host that has one of them is an address, or a name that somebody may have registered."""
_MAX_KNOWN = 1024
"""Maximum header values that are remembered: a host may come with any port."""
_LONGEST_NAME = 255
"""Bytes of the longest name that DNS has."""


class AllowedHosts:
    """The hosts that requests may be sent to.

    Where the server listens on loopback, these are the addresses of loopback, the hosts that are set, and names without
    a dot, as `localhost` and those of a local network are: no site can register such a name. Elsewhere every host is
    allowed, unless some are set: then the same, and all IP addresses, which probes send, and which nobody can have
    resolved to another machine.

    Args:
        listens_on: the address or name that the server listens on.
        allowed: the hosts that are set; `*` allows all.

    Attributes:
        known: values of `Host` that were found to be allowed.
    """

    def __init__(self, listens_on: str, allowed: Sequence[str]) -> None:
        self._on_loopback = is_loopback(listens_on)
        self._is_unlimited = ALL in allowed or not (allowed or self._on_loopback)
        self._only_on_loopback = not allowed
        self._names = {listens_on.strip("[]").lower(), *allowed}
        self.known: set[bytes] = set()

    @property
    def is_limited(self) -> bool:
        """Whether any host may be refused."""
        return not self._is_unlimited

    def refusal(self, host: bytes | None, server: tuple[str, int | None] | None) -> ServiceError | None:
        """Return why a request is refused, None where it is not.

        Args:
            host: its `Host` header; None where it has none, which no browser sends.
            server: address and port that it came to. An application that another server runs than this package's may
                listen elsewhere than its settings say.
        """
        if host is None:
            return None
        if self._is_unlimited:
            self._remember(host)
            return None
        if self._only_on_loopback and not (server and server[0].startswith(_LOOPBACK_ADDRESSES)):
            return None
        name = _without_port(host.decode("latin-1"))
        if not self._allows(name):
            message = f"the host {shown(name)} is not allowed; add it to allowed_hosts"
            return ServiceError(
                421, "host_refused", message, {"host": name[:200], "setting": "allowed_hosts"}
            )
        self._remember(host)
        return None

    def _remember(self, host: bytes) -> None:
        if len(self.known) < _MAX_KNOWN and len(host) <= _LONGEST_NAME:
            self.known.add(host)

    def _allows(self, name: str) -> bool:
        if name in self._names or not _SEPARATORS & set(name):
            return True
        return is_address(name) and (not self._on_loopback or ip_address(name).is_loopback)


def is_loopback(host: str) -> bool:
    """Return whether nobody but this machine reaches what listens on a host.

    Args:
        host: an IP address, or a name, which is resolved.
    """
    if host.lower() == _LOOPBACK_NAME:
        return True
    if is_address(host):
        return ip_address(host).is_loopback
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except (OSError, UnicodeError):
        return False  # nothing can listen there, which the start of the server reports
    return bool(found) and all(ip_address(address[0]).is_loopback for *_, address in found)


def _without_port(host: str) -> str:
    """Return a host in lower case, without its port and the brackets of an IPv6 address."""
    whole = host.strip().lower()
    name, _, port = whole.rpartition(":")
    if not (name and port.isdecimal() and (name.endswith("]") or ":" not in name)):
        name = whole
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name
