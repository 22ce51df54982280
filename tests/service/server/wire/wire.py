"""Requests written byte by byte, and responses read so."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from tests.service.server.process import SOON, ServerProcess


@dataclass(frozen=True)
class Ask:
    """A request.

    Attributes:
        target: path and query.
        body: its body.
        headers: its headers, but for the length.
        version: of HTTP.
    """

    target: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    version: str = "1.1"

    def plain(self) -> bytes:
        """Return it in its usual form."""
        return self._write(self.body, (*self.headers, ("Content-Length", str(len(self.body)))))

    def escaped(self) -> bytes:
        """Return it with a letter of its path escaped."""
        return replace(self, target=self.target.replace("/infer", "/%69nfer")).plain()

    def with_trailer(self) -> bytes:
        """Return it with a header that announces a trailer."""
        return replace(self, headers=(*self.headers, ("Trailer", "x"))).plain()

    def chunked(self) -> bytes:
        """Return it with its body in chunks, whose length nobody knows before."""
        pieces = [self.body[start : start + 1000] for start in range(0, len(self.body), 1000)]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
        return self._write(chunks, (*self.headers, ("Transfer-Encoding", "chunked")))

    def _write(self, body: bytes, headers: tuple[tuple[str, str], ...]) -> bytes:
        lines = [f"POST {self.target} HTTP/{self.version}", "Host: test"]
        lines += [f"{name}: {value}" for name, value in headers]
        return "\r\n".join((*lines, "", "")).encode("latin-1") + body


@dataclass(frozen=True)
class Reply:
    """A response: its status, its headers by name in lower case, its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to a server."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._reader = connection.makefile("rb")

    def send(self, *packets: bytes) -> None:
        """Send packets, each by itself."""
        for packet in packets:
            self.socket.sendall(packet)

    def send_aside(self, *packets: bytes) -> threading.Thread:
        """Send packets on a thread of its own, so that responses can be read meanwhile."""
        thread = threading.Thread(target=self.send, args=packets)
        thread.start()
        return thread

    def reply(self) -> Reply:
        """Return the next response."""
        status = int(self._reader.readline().split()[1])
        pairs = []
        while line := self._reader.readline().strip():
            name, _, value = line.decode("latin-1").partition(": ")
            pairs.append((name.lower(), value))
        headers = dict(pairs)
        assert len(headers) == len(pairs), f"a header came twice: {pairs}"
        return Reply(status, headers, self._reader.read(int(headers["content-length"])))

    def interim(self) -> int:
        """Return the status of an interim response, which has no headers."""
        status = int(self._reader.readline().split()[1])
        assert self._reader.readline() == b"\r\n"
        return status

    def rest(self) -> bytes:
        """Return what comes until the server closes."""
        return self._reader.read()

    def close(self) -> None:
        self._reader.close()
        self.socket.close()


def dial(server: ServerProcess, tls: ssl.SSLContext | None = None) -> Wire:
    """Connect to a server."""
    port = urlsplit(server.url).port
    assert port is not None
    connection = socket.create_connection(("127.0.0.1", port), SOON)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Wire(connection if tls is None else tls.wrap_socket(connection, server_hostname="127.0.0.1"))


@contextmanager
def connected(server: ServerProcess, tls: ssl.SSLContext | None = None) -> Iterator[Wire]:
    """Connect to a server for as long as the context lasts."""
    wire = dial(server, tls)
    try:
        yield wire
    finally:
        wire.close()


def ask(server: ServerProcess, request: bytes) -> Reply:
    """Send one request on a connection of its own."""
    with connected(server) as wire:
        wire.send(request)
        return wire.reply()
