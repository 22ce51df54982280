"""Many clients that read their responses slowly, though faster than the server asks for."""

import time
from contextlib import ExitStack

from tests.attack.attack import Attack, Target
from tests.attack.attacks.floods import ADDRESS
from tests.attack.attacks.rows import digits_request

PIECE = 4096
PAUSE_SECONDS = 0.1
"""40 KiB a second, ten times what a client has to read."""


def run(target: Target, count: int) -> None:
    """Ask for `count` responses of some 700 kB on a connection each, and read them piece by piece."""
    request = digits_request(10, "trace=off&capture=3,4,5", "application/x-npz")
    with ExitStack() as stack:
        wires = [stack.enter_context(target.connect(PIECE, ADDRESS)) for _ in range(count)]
        for wire in wires:
            wire.send(request)
        until = time.monotonic() + target.seconds
        while time.monotonic() < until:
            started = time.monotonic()
            for wire in wires:
                wire.read_some(PIECE)
            time.sleep(max(0.0, PAUSE_SECONDS + started - time.monotonic()))


SLOW_READERS = Attack("slow readers", "connections", run, (10, 200, 200))
