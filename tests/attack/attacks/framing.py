"""Bytes that HTTP allows and that mean nothing: chunk extensions, and blank lines before a request."""

from tests.attack.attack import Attack, Target
from tests.attack.wire import request_head

_MEGABYTE = 1_000_000


def run(target: Target, count: int) -> None:
    """Send up to `count` megabytes of each kind, a connection for each, until the server closes it."""
    chunked = request_head("/infer?model=digits", 0).replace(
        b"Content-Length: 0", b"Transfer-Encoding: chunked"
    )
    one_extension = chunked + b"1;"
    for start, filling in (
        (one_extension, b"a" * _MEGABYTE),
        (chunked, (b"1;" + b"a" * 95 + b"\r\na\r\n") * (_MEGABYTE // 100)),
        (b"", b"\r\n" * (_MEGABYTE // 2)),
    ):
        with target.connect() as wire:
            wire.send(start)
            for _ in range(count):
                if not wire.send(filling):
                    break


FRAMING = Attack("chunk extensions and blank lines without end", "megabytes", run, (1, 500, 2000))
