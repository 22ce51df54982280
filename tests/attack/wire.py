"""A plain connection of an attacker: bytes out, and responses in where it cares for them."""

import contextlib
import json
import socket
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tests.attack.attack import Target

REPLY_SECONDS = 60.0
"""Timeout of an attacker for a response, in seconds."""


def request_head(target: str, length: int, kind: str = "application/octet-stream") -> bytes:
    """Return the head of a POST with a body of so many bytes."""
    lines = (
        f"POST {target} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
    )
    return "\r\n".join((*lines, "", "")).encode()


class Wire:
    """A connection to the server under attack.

    Args:
        target: the server; what is sent and what is answered is counted there.
        receive_buffer: bytes that the system takes in before they are read; None: its default.
        address: where to connect from; None: where the system chooses.
    """

    def __init__(
        self, target: "Target", receive_buffer: int | None = None, address: str | None = None
    ) -> None:
        self._target = target
        self._socket = socket.socket()
        if receive_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if address is not None:
            self._socket.bind((address, 0))
        self._socket.settimeout(REPLY_SECONDS)
        self._socket.connect(("127.0.0.1", target.port))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, data: bytes) -> bool:
        """Send bytes; returns whether the server still takes any."""
        try:
            self._socket.sendall(data)
        except OSError:
            return False
        self._target.sent += len(data)
        return True

    def send_some(self, data: bytes) -> int:
        """Send what the system takes at once, without waiting for the server; returns how many bytes."""
        self._socket.setblocking(False)
        sent = 0
        with contextlib.suppress(OSError):
            while sent < len(data):
                sent += self._socket.send(data[sent:])
        self._socket.settimeout(REPLY_SECONDS)
        self._target.sent += sent
        return sent

    def read_some(self, size: int) -> int:
        """Read what has come of a response, at most so many bytes, without waiting; returns how many bytes."""
        self._socket.setblocking(False)
        try:
            return len(self._socket.recv(size))
        except OSError:
            return 0
        finally:
            self._socket.settimeout(REPLY_SECONDS)

    def reply(self) -> int:
        """Read a response and count it; returns its status, 0 where the server closed the connection."""
        with contextlib.suppress(OSError), self._socket.makefile("rb") as response:
            words = response.readline().split()
            if len(words) > 1:
                length = 0
                while line := response.readline().strip():
                    name, _, value = line.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                self._count(int(words[1]), response.read(length))
                return int(words[1])
        self._target.replies["closed"] += 1
        return 0

    def is_closed(self) -> bool:
        """Return whether the server has closed the connection; reads nothing that a response is made of."""
        self._socket.setblocking(False)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self._socket.settimeout(REPLY_SECONDS)

    def close(self) -> None:
        """Leave."""
        self._socket.close()

    def _count(self, status: int, body: bytes) -> None:
        code = ""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            code = str(json.loads(body)["code"]) if status >= 400 else ""
        self._target.replies[f"{status} {code}".strip()] += 1
