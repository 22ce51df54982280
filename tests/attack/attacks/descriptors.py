"""More connections than the server has file descriptors."""

import contextlib
import time
from contextlib import ExitStack

from tests.attack.attack import Attack, Target
from tests.attack.wire import request_head

FIRST = b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n" + request_head("/infer?model=digits", 1 << 20)
DRIP_SECONDS = 0.2


def run(target: Target, count: int) -> None:
    """Open `count` connections; on each, let a body drip behind a GET that was answered."""
    with ExitStack() as stack:
        wires = []
        for _ in range(count):
            with contextlib.suppress(OSError):
                wires.append(stack.enter_context(target.connect()))
        for wire in wires:
            wire.send_some(FIRST)
        until = time.monotonic() + target.seconds
        while time.monotonic() < until:
            for wire in wires:
                wire.send_some(b"0")
            time.sleep(DRIP_SECONDS)


DESCRIPTORS = Attack(
    "more connections than descriptors (128)", "connections", run, (150, 300, 300), descriptors=128
)
