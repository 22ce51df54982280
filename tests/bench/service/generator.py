"""Requests over connections that are kept open, one at a time on each: the same for every server."""

import asyncio
from dataclasses import dataclass
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import numpy as np
import uvloop

WARM_UP_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Timings:
    """What a server did under a load.

    Attributes:
        per_second: requests a second.
        p50: median milliseconds of a request.
        p99: milliseconds that 99 of 100 requests stayed below.
    """

    per_second: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer.

    Attributes:
        head: its status line and headers.
        body: its body.
    """

    head: bytes
    body: bytes


class Asker(asyncio.Protocol):
    """Sends the same request again as soon as it is answered."""

    def __init__(self, request: bytes, until: float) -> None:
        self._request = request
        self._received = bytearray()
        self._wanted = 0
        self._started = 0.0
        self.seconds: list[float] = []
        self.answer: Answer | None = None
        self.ended = asyncio.get_running_loop().create_future()
        self._until = until

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Take in a part of an answer."""
        self._received += data
        if not self._wanted:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            self._wanted = end + 4 + content_length(bytes(self._received[:end]))
        if len(self._received) >= self._wanted:
            self._answered()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell that the connection ended too early, if it did."""
        if not self.ended.done():
            self.ended.set_exception(ConnectionError("the server closed the connection"))

    def close(self) -> None:
        """Ask nothing more."""
        self._transport.close()

    def _ask(self) -> None:
        self._received.clear()
        self._wanted = 0
        self._started = perf_counter()
        self._transport.write(self._request)

    def _answered(self) -> None:
        now = perf_counter()
        self.seconds.append(now - self._started)
        if self.answer is None:
            head, _, body = bytes(self._received).partition(b"\r\n\r\n")
            self.answer = Answer(head, body)
        if not self._received.startswith(b"HTTP/1.1 200"):
            self.ended.set_exception(ValueError(bytes(self._received[:1000]).decode(errors="replace")))
        elif now < self._until:
            self._ask()
        else:
            self.ended.set_result(None)


class Generator:
    """A number of connections to one server.

    Args:
        url: the server.
        request: what each connection sends, head and body.
        connections: how many.
    """

    def __init__(self, url: str, request: bytes, connections: int) -> None:
        self._address = urlsplit(url)
        self._request = request
        self._connections = connections

    def measure(self, seconds: float) -> tuple[Timings, Answer]:
        """Ask for some seconds, after a warm-up; returns the timings and the first answer.

        Raises:
            ValueError: an answer was not 200.
            ConnectionError: the server closed a connection.
        """
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._ask(WARM_UP_SECONDS))
            started = perf_counter()
            askers = runner.run(self._ask(seconds))
            taken = perf_counter() - started
        milliseconds = np.concatenate([asker.seconds for asker in askers]) * 1e3
        p50, p99 = np.percentile(milliseconds, [50, 99])
        answer = askers[0].answer
        if answer is None:
            raise ValueError("there was no answer")
        return Timings(len(milliseconds) / taken, float(p50), float(p99)), answer

    async def _ask(self, seconds: float) -> list[Asker]:
        loop = asyncio.get_running_loop()
        until = perf_counter() + seconds
        host, port = self._address.hostname or "", self._address.port or 80
        askers = []
        for _ in range(self._connections):
            _, asker = await loop.create_connection(lambda: Asker(self._request, until), host, port)
            askers.append(asker)
        await asyncio.gather(*(asker.ended for asker in askers))
        for asker in askers:
            asker.close()
        return askers


def content_length(head: bytes) -> int:
    """Return how many bytes follow a head; 0 where it does not say."""
    lowered = head.lower()
    start = lowered.find(b"\r\ncontent-length:")  # others end in these words
    return 0 if start < 0 else int(lowered[start + 17 :].split(b"\r\n", 1)[0])
