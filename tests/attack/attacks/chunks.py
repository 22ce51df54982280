"""Chunked bodies that take long to parse for their bytes."""

import time
from contextlib import ExitStack

from tests.attack.attack import Attack, Target
from tests.attack.attacks.floods import ADDRESS
from tests.attack.wire import request_head

_HEAD = request_head("/infer?model=digits", 0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
_EMPTY_LINES = b"\r\n\r\n" * 15_000
_BODIES = (
    b"%x\r\n%b\r\n" % (len(_EMPTY_LINES), _EMPTY_LINES),
    (b"40\r\n" + b"a" * 64 + b"\r\n") * 800,
    b"1\r\na\r\n" * 9_000,
)
"""A large chunk of what ends a request elsewhere, small chunks, and as many tiny ones as a body may have."""
PAUSE_SECONDS = 0.002


def run(target: Target, count: int) -> None:
    """Send such bodies on `count` connections, as fast as the server takes them."""
    with ExitStack() as stack:
        wires = [stack.enter_context(target.connect(address=ADDRESS)) for _ in range(count)]
        unsent = [_HEAD for _ in wires]
        until = time.monotonic() + target.seconds
        while time.monotonic() < until:
            sent = 0
            for place, wire in enumerate(wires):
                data = unsent[place] or _BODIES[place % len(_BODIES)]
                taken = wire.send_some(data)
                unsent[place] = data[taken:]
                sent += taken
            if not sent:
                time.sleep(PAUSE_SECONDS)


CHUNKS = Attack("chunked bodies of small chunks and of empty lines", "connections", run, (3, 6, 50))
