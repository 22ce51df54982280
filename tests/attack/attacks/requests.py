"""Requests that are made one after the other on a connection, each answered before the next."""

from collections.abc import Iterable

from tests.attack.attack import Target
from tests.attack.wire import request_head


def ask_in_turn(target: Target, requests: Iterable[bytes]) -> None:
    """Send requests, and read each response; on a new connection where the server closed the last one."""
    wire = target.connect()
    for request in requests:
        if not (wire.send(request) and wire.reply()):
            wire.close()
            wire = target.connect()
    wire.close()


def post(path: str, body: bytes, kind: str, *headers: str) -> bytes:
    """Return a POST with a body, and more lines in its head."""
    lines = "".join(f"\r\n{line}" for line in headers).encode()
    head = request_head(path, len(body), kind)
    return head[:-4] + lines + b"\r\n\r\n" + body
