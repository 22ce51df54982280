"""The sockets that the server listens on, opened before anything else is done."""

import errno
import os
import socket

from service.errors import ListenError

BACKLOG = 2048
"""Connections that the system accepts before the server has got to them."""
_LACKING = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""Errors of an address that a name stands for although the machine lacks it, as containers without IPv6 do."""


def listen(host: str, port: int, flag: str = "--port") -> list[socket.socket]:
    """Listen on every address that a host has.

    Args:
        host: a name or an address; empty for all addresses of the machine.
        port: 0 for a free one, the same for all addresses.
        flag: what chooses the port.

    Raises:
        ListenError: the port is in use, or the address cannot be had.
    """
    sockets: list[socket.socket] = []
    lacking: OSError | None = None
    try:
        for family, address in _addresses(host, port):
            bound = sockets[0].getsockname()[1] if sockets else port
            try:
                place = (address[0], bound, *address[2:])
                sockets.append(socket.create_server(place, family=family, backlog=BACKLOG))
            except OSError as error:
                if error.errno not in _LACKING:
                    raise
                lacking = error
        if lacking is not None and not sockets:
            raise lacking
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise ListenError(_explain(host, port, flag, error)) from error
    return sockets


def reserve(host: str, port: int, flag: str) -> list[socket.socket]:
    """Bind a port without listening, so that processes can listen on it by SO_REUSEPORT; Linux only.

    Args:
        host: a name or an address; empty for all addresses of the machine.
        port: 0 for a free one, the same for all addresses.
        flag: the command line flag of the port.

    Raises:
        ListenError: the port is in use, or the address cannot be had.
    """
    reserved = []
    for probe in listen(host, port, flag):  # SO_REUSEPORT alone would share the port with another server
        address = probe.getsockname()
        probe.close()
        bound = socket.socket(probe.family, socket.SOCK_STREAM)
        if hasattr(socket, "SO_REUSEPORT"):  # without it several processes are refused
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if probe.family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
        reserved.append(bound)
    return reserved


def url_of(listening: socket.socket, host: str, *, is_secure: bool) -> str:
    """Return the URL at which a socket is reached by those who know the host by that name."""
    shown = f"[{host}]" if ":" in host else host or "0.0.0.0"  # noqa: S104  # shown, not listened on
    return f"http{'s' if is_secure else ''}://{shown}:{listening.getsockname()[1]}"


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[object, ...]]]:
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((family, tuple(address)) for family, _, _, _, address in found))


def _explain(host: str, port: int, flag: str, error: OSError) -> str:
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    is_unknown = isinstance(error, socket.gaierror)
    reason = (str(error.strerror) if is_unknown else os.strerror(error.errno or 0)).lower()
    if is_unknown or error.errno == errno.EADDRNOTAVAIL:
        return f"{place}: {reason}; --host names an address of this machine"
    if error.errno == errno.EADDRINUSE:
        return f"{place}: {reason}; choose another port with {flag}, or a free one with {flag} 0"
    if error.errno == errno.EACCES:
        return f"{place}: {reason}; choose a port from 1024 with {flag}"
    return f"{place}: {reason}; --host and {flag} choose where to listen"
