"""Many connections that ask for what is computed, again and again."""

import time
from contextlib import ExitStack
from itertools import cycle

from tests.attack.attack import Attack, Target
from tests.attack.attacks.floods import ADDRESS

PAGES = ("/metrics", "/traces", "/graph?model=digits", "/docs")


def run(target: Target, count: int) -> None:
    """Ask on `count` connections for one page each, and again once all are answered."""
    requests = [f"GET {page} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() for page in PAGES]
    with ExitStack() as stack:
        wires = [stack.enter_context(target.connect(address=ADDRESS)) for _ in range(count)]
        until = time.monotonic() + target.seconds
        while wires and time.monotonic() < until:
            asked = [
                wire for wire, request in zip(wires, cycle(requests), strict=False) if wire.send(request)
            ]
            wires = [wire for wire in asked if wire.reply()]


COMPUTED_PAGES = Attack("pages that are computed", "connections", run, (50, 1000, 3000))
