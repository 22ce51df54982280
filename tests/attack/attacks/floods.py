"""One client that asks as much as it can, at an address of its own."""

import threading
import time

from tests.attack.attack import Attack, Target
from tests.attack.attacks.rows import digits_request

ADDRESS = "127.0.0.2"
ROWS = 8
"""Rows of each request, so that the model is busy rather than the client."""


def run(target: Target, count: int) -> None:
    """Ask on so many connections at once, again and again, whatever comes."""
    until = time.monotonic() + target.seconds
    request = digits_request(ROWS)

    def ask() -> None:
        while time.monotonic() < until:
            with target.connect(address=ADDRESS) as wire:
                while time.monotonic() < until and wire.send(request) and wire.reply():
                    pass

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


FLOODS = Attack(
    "one client that fills the queue", "connections at once", run, (12, 48, 96), flags=("--queue-size", "8")
)
