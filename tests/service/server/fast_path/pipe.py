"""A connection in this process: what it is sent is said by the test, and what it sends is kept."""

import asyncio
from collections.abc import Iterable
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from service.server.connection import Connection
from service.server.fast_path import desk_of
from tests.service.scheduling.stubs import until
from tests.service.server.fast_path.wire import Reply


class Pipe(asyncio.Transport):
    """Keeps what a connection sends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.is_open = True
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.sent += b"".join(list_of_data)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        """Go on: the test says what comes."""

    def resume_reading(self) -> None:
        """Go on likewise."""

    def close(self) -> None:
        self.is_open = False

    def is_closing(self) -> bool:
        return not self.is_open


class Talk:
    """A connection and its pipe.

    Args:
        app: answers what the connection does not.
    """

    def __init__(self, app: FastAPI) -> None:
        config = uvicorn.Config(app, http=Connection, log_config=None, lifespan="off")
        self.pipe = Pipe()
        self.connection = Connection(config, ServerState(), {}, desk=desk_of(app))
        self.pipe.set_protocol(self.connection)
        self.connection.connection_made(self.pipe)

    def say(self, data: bytes) -> None:
        """Let data come as one packet, or as many as the protocol takes it in."""
        while data:
            protocol: Any = self.pipe.protocol
            if not isinstance(protocol, asyncio.BufferedProtocol):
                protocol.data_received(data)
                return
            room = memoryview(protocol.get_buffer(-1))
            if not self.pipe.is_open:
                return
            count = min(len(room), len(data))
            room[:count] = data[:count]
            protocol.buffer_updated(count)
            data = data[count:]

    def leave(self) -> None:
        """Be a client that is gone."""
        self.pipe.close()
        self.connection.connection_lost(None)
        self.pipe.protocol = None  # as real ones forget theirs

    async def replies(self, count: int = 1) -> list[Reply]:
        """Return so many answers when they have all come."""
        await until(lambda: self.pipe.sent.count(b"HTTP/1.1 ") >= count)
        await until(lambda: len(_split(self.pipe.sent)) >= count)
        sent, self.pipe.sent = self.pipe.sent, b""
        return _split(sent)


def _split(sent: bytes) -> list[Reply]:
    """Return the answers that are whole."""
    replies = []
    while b"\r\n\r\n" in sent:
        head, _, sent = sent.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers["content-length"])
        if len(sent) >= length:
            replies.append(Reply(int(first.split()[1]), headers, sent[:length]))
        sent = sent[length:]
    return replies
