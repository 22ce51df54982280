"""HTTP/1.1 on bare connections, so that they can be left at any byte."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

import orjson


@dataclass(frozen=True, slots=True)
class SoakRequest:
    """A request.

    Attributes:
        method: its method.
        target: path and query.
        headers: its headers but those of the body's length.
        body: its body.
        chunk: bytes of a chunk, where the body goes in chunks; 0 where it goes whole.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    chunk: int = 0

    def head(self) -> bytes:
        """Return all before the body."""
        length = {"Transfer-Encoding": "chunked"} if self.chunk else {"Content-Length": str(len(self.body))}
        lines = [f"{name}: {value}" for name, value in {"Host": "soak", **self.headers, **length}.items()]
        return "\r\n".join([f"{self.method} {self.target} HTTP/1.1", *lines, "", ""]).encode()

    def wire_body(self) -> bytes:
        """Return the body as it goes over the wire."""
        if not self.chunk:
            return self.body
        starts = range(0, len(self.body), self.chunk)
        chunks = [self.body[start : start + self.chunk] for start in starts]
        return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in [*chunks, b""])


@dataclass(frozen=True, slots=True)
class SoakReply:
    """A response.

    Attributes:
        status: its status.
        headers: its headers, names in lower case.
        body: its body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The machine-readable name of the error; empty where there is none."""
        if self.status < 400:
            return ""
        document: Any = orjson.loads(self.body)
        return str(document["code"])


class SoakConnection:
    """A connection that is kept open from request to request."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.is_open = True

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect to a server."""
        address = urlsplit(url)
        return cls(*await asyncio.open_connection(address.hostname, address.port))

    async def ask(self, request: SoakRequest) -> SoakReply:
        """Send a request and return its response."""
        await self.send(request.head() + request.wire_body())
        return await self.receive()

    async def ask_all(self, requests: Sequence[SoakRequest]) -> list[SoakReply]:
        """Send several requests before the first is answered; returns the responses of those that are answered."""
        await self.send(b"".join(request.head() + request.wire_body() for request in requests))
        replies: list[SoakReply] = []
        while self.is_open and len(replies) < len(requests):
            replies.append(await self.receive())
        return replies

    async def send(self, data: bytes) -> None:
        """Send bytes; a server that listens no more may have answered all the same."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def receive(self) -> SoakReply:
        """Return the next response."""
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        pairs = (line.split(": ", 1) for line in lines)
        headers = {name.lower(): value for name, value in pairs}
        body = await self._reader.readexactly(int(headers["content-length"]))
        self.is_open = headers.get("connection", "").lower() != "close"
        return SoakReply(int(first.split()[1]), headers, body)

    async def receive_some(self) -> bool:
        """Read the beginning of a response; returns whether there was one."""
        return bool(await self._reader.read(64))

    def abort(self) -> None:
        """Leave at once."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """Leave in good order."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
